package interop

import (
	"encoding/binary"
	"io"
	"net"
	"path/filepath"
	"sync"
)

// A tap sits between numafitd and the runtime's socket, passes every frame on as it came, keeps
// what numafitd answered, and can hold frames back or slip one in.
type tap struct {
	lock    sync.Mutex
	plugin  net.Conn          // the present connection to numafitd
	methods map[uint32]string // of the runtime's calls, by stream id
	answers []answer
	// whether a frame of that stream to numafitd must wait for now; asked again after each answer
	hold func(stream uint32) bool
	held [][]byte
}

type answer struct {
	method  string
	status  uint64
	payload []byte
}

const (
	pluginStream  = 1 // the runtime calls numafitd
	runtimeStream = 2 // numafitd calls the runtime
)

// newTappedNode is newNode with a tap on the connection.
func newTappedNode(n *node, hold func(stream uint32) bool) *tap {
	t := &tap{hold: hold, methods: map[uint32]string{}}
	real := n.socket
	n.socket = filepath.Join(n.dir, "tap.sock")
	listener, err := net.Listen("unix", n.socket)
	if err != nil {
		n.Fatal(err)
	}
	n.Cleanup(func() { listener.Close() })
	go func() {
		for {
			plugin, err := listener.Accept()
			if err != nil {
				return
			}
			runtime, err := net.Dial("unix", real)
			if err != nil {
				plugin.Close()
				continue
			}
			t.lock.Lock()
			t.plugin, t.held = plugin, nil
			t.lock.Unlock()
			go t.pass(runtime, plugin, t.toPlugin)
			go t.pass(plugin, runtime, t.toRuntime)
		}
	}()
	n.startRuntime()
	n.startDaemon()
	n.waitConnected()
	return t
}

// pass hands over every frame, and beside it to see() every whole message of the plugin stream.
func (t *tap) pass(from, to net.Conn, see func(message []byte)) {
	defer from.Close()
	defer to.Close()
	var stream []byte
	for {
		frame := make([]byte, 8)
		if _, err := io.ReadFull(from, frame); err != nil {
			return
		}
		id, length := binary.BigEndian.Uint32(frame), binary.BigEndian.Uint32(frame[4:])
		frame = append(frame, make([]byte, length)...)
		if _, err := io.ReadFull(from, frame[8:]); err != nil {
			return
		}
		if id == pluginStream {
			stream = append(stream, frame[8:]...)
		}
		for len(stream) >= 10 && len(stream) >= 10+int(binary.BigEndian.Uint32(stream)) {
			whole := 10 + int(binary.BigEndian.Uint32(stream))
			see(stream[:whole])
			stream = stream[whole:]
		}
		t.send(to, id, frame)
	}
}

func (t *tap) send(to net.Conn, id uint32, frame []byte) {
	t.lock.Lock()
	defer t.lock.Unlock()
	if to == t.plugin && t.hold != nil && t.hold(id) {
		t.held = append(t.held, frame)
		return
	}
	to.Write(frame)
	for to != t.plugin && len(t.held) > 0 && !t.hold(binary.BigEndian.Uint32(t.held[0])) {
		t.plugin.Write(t.held[0])
		t.held = t.held[1:]
	}
}

func (t *tap) toPlugin(message []byte) {
	t.lock.Lock()
	defer t.lock.Unlock()
	t.methods[binary.BigEndian.Uint32(message[4:])] = string(field(message[10:], 2))
}

func (t *tap) toRuntime(message []byte) {
	t.lock.Lock()
	defer t.lock.Unlock()
	t.answers = append(t.answers, answer{t.methods[binary.BigEndian.Uint32(message[4:])],
		number(field(message[10:], 1), 1), append([]byte{}, field(message[10:], 2)...)})
}

// slip sends bytes of the test's own to numafitd.
func (t *tap) slip(bytes []byte) {
	t.lock.Lock()
	defer t.lock.Unlock()
	t.plugin.Write(bytes)
}

// answered are numafitd's answers to that method so far.
func (t *tap) answered(method string) (list []answer) {
	t.lock.Lock()
	defer t.lock.Unlock()
	for _, a := range t.answers {
		if a.method == method || method == "" {
			list = append(list, a)
		}
	}
	return list
}

// walk finds the last field of that number in a protobuf message, as far as one is needed here.
func walk(message []byte, wanted uint64) (value uint64, bytes []byte) {
	for len(message) > 0 {
		key, n := binary.Uvarint(message)
		v, m := binary.Uvarint(message[max(n, 0):])
		if n <= 0 || m <= 0 {
			break
		}
		message = message[n+m:]
		var b []byte
		if key&7 == 2 {
			b, message = message[:v], message[v:]
		}
		if key>>3 == wanted {
			value, bytes = v, b
		}
	}
	return value, bytes
}

func field(message []byte, nr uint64) []byte {
	_, bytes := walk(message, nr)
	return bytes
}

func number(message []byte, nr uint64) uint64 {
	value, _ := walk(message, nr)
	return value
}
