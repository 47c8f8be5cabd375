module numafit/test/interop/scheduler

go 1.24.0
