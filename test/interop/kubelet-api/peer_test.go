package interop

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/encoding/gzip"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
)

// numafit's gRPC server and client (src/kubelet/grpc_*) with grpc-go on the other side, as in the
// kubelet: its dial options, its generic errors, its limits. grpc_peer.c is the program around ours.

const patience = 20 * time.Second

// raw passes messages as the bytes that they are.
type raw struct{}

func (raw) Marshal(v any) ([]byte, error)      { return *v.(*[]byte), nil }
func (raw) Unmarshal(data []byte, v any) error { *v.(*[]byte) = slices.Clone(data); return nil }
func (raw) Name() string                       { return "proto" }

type peer struct {
	*testing.T
	socket string
	conn   *grpc.ClientConn
	ctx    context.Context
}

// startServer runs ours and dials it as the kubelet does a device plugin.
func startServer(t *testing.T) *peer {
	p := &peer{T: t, socket: filepath.Join(t.TempDir(), "ours.sock")}
	command := exec.Command(os.Getenv("GRPC_PEER"), "serve", p.socket)
	command.Stderr = os.Stderr
	out, err := command.StdoutPipe()
	if err == nil {
		err = command.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = command.Process.Signal(syscall.SIGTERM)
		if err := command.Wait(); err != nil {
			t.Errorf("the server ended: %v", err)
		}
	})
	if line, err := bufio.NewReader(out).ReadString('\n'); err != nil || line != "ready\n" {
		t.Fatalf("the server says %q, %v", line, err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	t.Cleanup(cancel)
	p.ctx = ctx
	//nolint:staticcheck // what the kubelet calls
	p.conn, err = grpc.DialContext(ctx, p.socket, grpc.WithBlock(), grpc.WithAuthority("localhost"),
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithDefaultCallOptions(grpc.ForceCodec(raw{})),
		grpc.WithContextDialer(func(ctx context.Context, path string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, "unix", path)
		}))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.conn.Close() })
	return p
}

func (p *peer) call(method string, request []byte, options ...grpc.CallOption) ([]byte, error) {
	p.Helper()
	var reply []byte
	err := p.conn.Invoke(p.ctx, "/test.Test/"+method, &request, &reply, options...)
	return reply, err
}

func (p *peer) stream(ctx context.Context, method string, request []byte) grpc.ClientStream {
	p.Helper()
	s, err := p.conn.NewStream(ctx, &grpc.StreamDesc{ServerStreams: true}, "/test.Test/"+method)
	if err == nil {
		err = s.SendMsg(&request)
	}
	if err == nil {
		err = s.CloseSend()
	}
	if err != nil {
		p.Fatal(err)
	}
	return s
}

func wantCode(t *testing.T, err error, code codes.Code, text string) {
	t.Helper()
	if status.Code(err) != code || !strings.Contains(status.Convert(err).Message(), text) {
		t.Errorf("got %v; want %v with %q", err, code, text)
	}
}

func TestServerAnswers(t *testing.T) {
	p := startServer(t)
	for _, size := range []int{0, 1, 16 << 10, 1 << 20} {
		request := bytes.Repeat([]byte{'x'}, size)
		if reply, err := p.call("Echo", request); err != nil || !bytes.Equal(reply, request) {
			t.Errorf("%d bytes: %d came back, %v", size, len(reply), err)
		}
	}
}

func TestServerSendsItsStatus(t *testing.T) {
	p := startServer(t)
	_, err := p.call("Fail", nil)
	wantCode(t, err, codes.NotFound, "pod ä: 100 % of it\nis gone")
	_, err = p.call("Ech", nil)
	wantCode(t, err, codes.Unimplemented, "does not serve")
	if _, err = p.call("Echo", nil); err != nil {
		t.Error(err)
	}
}

func TestServerLimitsRequests(t *testing.T) {
	p := startServer(t)
	request := make([]byte, 16<<20)
	reply, err := p.call("Echo", request, grpc.MaxCallRecvMsgSize(16<<20))
	if err != nil || len(reply) != len(request) {
		t.Errorf("16 MiB: %d bytes came back, %v", len(reply), err)
	}
	_, err = p.call("Echo", make([]byte, 16<<20+1))
	wantCode(t, err, codes.ResourceExhausted, "")
	// a message whose size nothing bounds, and a small one: no kubelet compresses
	for _, size := range []int{64 << 20, 3} {
		_, err = p.call("Echo", make([]byte, size), grpc.UseCompressor(gzip.Name))
		wantCode(t, err, codes.Unimplemented, "")
	}
	if reply, err = p.call("Echo", []byte("plain")); string(reply) != "plain" {
		t.Errorf("%q, %v", reply, err)
	}
}

func TestServerStreams(t *testing.T) {
	p := startServer(t)
	s := p.stream(p.ctx, "Count", []byte("1000"))
	for n := 1; n <= 1000; n++ {
		var message []byte
		if err := s.RecvMsg(&message); err != nil || string(message) != fmt.Sprint(n) {
			t.Fatalf("message %d is %q, %v", n, message, err)
		}
	}
	var message []byte
	if err := s.RecvMsg(&message); err != io.EOF {
		t.Errorf("the end is %v", err)
	}
}

func TestServerServesManyStreamsOfOneConnection(t *testing.T) {
	p := startServer(t)
	var streams []grpc.ClientStream
	for range 100 {
		streams = append(streams, p.stream(p.ctx, "Count", []byte("50")))
	}
	for _, s := range streams {
		nr := 0
		var message []byte
		for s.RecvMsg(&message) == nil {
			nr++
		}
		if nr != 50 {
			t.Errorf("%d messages", nr)
		}
	}
}

func TestServerHearsThatAClientIsGone(t *testing.T) {
	p := startServer(t)
	ctx, cancel := context.WithCancel(p.ctx)
	s := p.stream(ctx, "Hang", nil)
	var message []byte
	if err := s.RecvMsg(&message); err != nil {
		t.Fatal(err)
	}
	if open, err := p.call("Open", nil); string(open) != "1" {
		t.Fatalf("%s streams are open, %v", open, err)
	}
	cancel()
	for p.ctx.Err() == nil {
		if open, err := p.call("Open", nil); string(open) == "0" || err != nil {
			break
		}
	}
	if open, err := p.call("Open", nil); string(open) != "0" {
		t.Errorf("%s streams are open, %v", open, err)
	}
}

func TestServerBearsDeadlines(t *testing.T) {
	p := startServer(t)
	ctx, cancel := context.WithTimeout(p.ctx, 50*time.Millisecond)
	defer cancel()
	s := p.stream(ctx, "Hang", nil)
	var message []byte
	err := s.RecvMsg(&message)
	for err == nil {
		err = s.RecvMsg(&message)
	}
	wantCode(t, err, codes.DeadlineExceeded, "")
	if _, err := p.call("Echo", nil); err != nil {
		t.Error(err)
	}
}

// One connection's messages are too many for its window; another's calls go on.
func TestServerBearsClientsThatDoNotRead(t *testing.T) {
	p := startServer(t)
	_ = p.stream(p.ctx, "Flood", nil)
	for range 100 {
		if _, err := p.call("Echo", nil); err != nil {
			t.Fatal(err)
		}
	}
}

// Its end, with an open stream, is no broken connection.
func TestServerSaysThatItEnds(t *testing.T) {
	p := startServer(t)
	s := p.stream(p.ctx, "Hang", nil)
	var message []byte
	if err := s.RecvMsg(&message); err != nil {
		t.Fatal(err)
	}
	if _, err := p.call("Quit", nil); err != nil {
		t.Fatal(err)
	}
	wantCode(t, s.RecvMsg(&message), codes.Unavailable, "numafit is going down")
	if _, err := os.Stat(p.socket); !os.IsNotExist(err) {
		t.Errorf("the socket is still there: %v", err)
	}
}

// The other way round.

// goServer answers any method with what handle does, and notes what it is sent besides.
func goServer(t *testing.T, handle func(method string, s grpc.ServerStream) error) string {
	path := filepath.Join(t.TempDir(), "go.sock")
	listener, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	server := grpc.NewServer(grpc.ForceServerCodec(raw{}),
		grpc.UnknownServiceHandler(func(_ any, s grpc.ServerStream) error {
			method, _ := grpc.MethodFromServerStream(s)
			return handle(strings.TrimPrefix(method, "/test.Test/"), s)
		}))
	go func() { _ = server.Serve(listener) }()
	t.Cleanup(server.Stop)
	return path
}

// client runs ours for one call and gives back what it printed.
func client(t *testing.T, words ...string) string {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	command := exec.CommandContext(ctx, os.Getenv("GRPC_PEER"), words...)
	command.Stderr = os.Stderr
	out, err := command.Output()
	if err != nil {
		t.Errorf("%v: %v", words, err)
	}
	return string(out)
}

func answers(method string, s grpc.ServerStream) error {
	var request, reply []byte
	if err := s.RecvMsg(&request); err != nil {
		return err
	}
	switch method {
	case "Echo":
		return s.SendMsg(&request)
	case "Error":
		return fmt.Errorf("pod %s not found", request)
	case "Status":
		return status.Error(codes.ResourceExhausted, "rejected by rate limit")
	case "Nothing":
		return nil
	case "Hang":
		<-s.Context().Done()
		return s.Context().Err()
	case "Big16", "Big17":
		var size int
		_, _ = fmt.Sscanf(method, "Big%d", &size)
		reply = make([]byte, size<<20)
		return s.SendMsg(&reply)
	case "Count":
		for n := 1; n <= 100; n++ {
			reply = []byte(fmt.Sprint(n))
			if err := s.SendMsg(&reply); err != nil {
				return err
			}
		}
		return status.Error(codes.Aborted, "that was all")
	}
	return status.Error(codes.Unimplemented, method)
}

func TestClientCalls(t *testing.T) {
	path := goServer(t, answers)
	for _, c := range []struct{ kind, method, timeout, want string }{
		{"unary", "Echo", "0", "message 3\nended 0 \n"},
		{"unary", "Error", "0", "ended 2 pod abc not found\n"},
		{"unary", "Status", "0", "ended 8 rejected by rate limit\n"},
		{"unary", "Missing", "0", "ended 12 Missing\n"},
		{"unary", "Nothing", "0", "ended 13 there is no reply\n"},
		{"unary", "Hang", "50", "ended 4 "},
		{"unary", "Big16", "0", "message 16777216\nended 0 \n"},
		{"unary", "Big17", "0", "ended 8 "},
		{"unary", "Count", "0", "ended 13 there is more than one reply\n"},
		{"stream", "Echo", "0", "message 3\nended 0 \n"},
		{"stream", "Nothing", "0", "ended 0 \n"},
		{"stream", "Hang", "50", "ended 4 "},
	} {
		got := client(t, c.kind, path, "/test.Test/"+c.method, c.timeout, "abc")
		if !strings.HasPrefix(got, c.want) {
			t.Errorf("%s %s: %q, want %q", c.kind, c.method, got, c.want)
		}
	}
}

func TestClientStreams(t *testing.T) {
	path := goServer(t, answers)
	got := client(t, "stream", path, "/test.Test/Count", "0", "")
	lines := strings.Split(strings.TrimSpace(got), "\n")
	if len(lines) != 101 || lines[100] != "ended 10 that was all" {
		t.Errorf("%d lines, the last is %q", len(lines), lines[len(lines)-1])
	}
}

func TestClientIsCorrectHTTP2(t *testing.T) {
	var header atomic.Pointer[metadata.MD]
	path := goServer(t, func(method string, s grpc.ServerStream) error {
		md, _ := metadata.FromIncomingContext(s.Context())
		header.Store(&md)
		return answers(method, s)
	})
	client(t, "unary", path, "/test.Test/Echo", "0", "abc")
	md := *header.Load()
	for key, want := range map[string]string{":authority": "localhost", "content-type": "application/grpc"} {
		if got := md.Get(key); len(got) != 1 || got[0] != want {
			t.Errorf("%s is %q", key, got)
		}
	}
}

func TestClientIgnoresProxies(t *testing.T) {
	for _, name := range []string{"http_proxy", "https_proxy", "grpc_proxy", "HTTP_PROXY"} {
		t.Setenv(name, "http://127.0.0.1:1")
	}
	path := goServer(t, answers)
	if got := client(t, "unary", path, "/test.Test/Echo", "0", "abc"); got != "message 3\nended 0 \n" {
		t.Errorf("%q", got)
	}
}

func TestClientSaysAtOnceThatNobodyListens(t *testing.T) {
	dir := t.TempDir()
	stale := filepath.Join(dir, "stale.sock")
	listener, err := net.ListenUnix("unix", &net.UnixAddr{Name: stale})
	if err != nil {
		t.Fatal(err)
	}
	listener.SetUnlinkOnClose(false)
	listener.Close()
	for path, want := range map[string]string{
		stale:                           "Connection refused",
		filepath.Join(dir, "none.sock"): "No such file or directory",
	} {
		if got := client(t, "unary", path, "/a/b", "0", ""); got != "socket "+path+": "+want+"\n" {
			t.Errorf("%q", got)
		}
	}
}
