// Real clients of Go against a broker: what each of them does is one line of JSON on stdout.
//
//	clients CLIENT TASK ADDRESS [NAME [COUNT,COUNT... | HEADER]]
//
// CLIENT is franz-go or sarama.  TASK is produce, consume, transactions, new-protocol, admin, stream,
// read or park; NAME is the topic, and the group of those that consume.  A task that fails is a field
// "error".  A stream sends what standard input holds, lines of a partition and a value; read tells
// the first COUNT records of each partition.  Park sends the records "first" and "second", which are
// due in two seconds and in two and a half, each by its timestamp, or by the HEADER if one is named,
// and tells their offsets as the client gives them.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"os"
	"strconv"
	"strings"
	"time"
)

// Records of the tasks produce and consume, and how long a task may take.
const (
	records = 100
	limit   = 240 * time.Second
)

// The values that are parked, and how much later each of them is due.
var parked = []string{"first", "second"}

var parkedFor = []time.Duration{2_000 * time.Millisecond, 2_500 * time.Millisecond}

type answer map[string]any

// A record as it was read, or one of a stream, which has no offset yet.
type record struct {
	partition int32
	offset    int64
	value     string
}

type client interface {
	produce(ctx context.Context, topic string) (answer, error)
	consume(ctx context.Context, name string) (answer, error)
	transactions(ctx context.Context) (answer, error)
	newProtocol(ctx context.Context, name string) (answer, error)
	admin(ctx context.Context, name string) (answer, error)
	// Sends every record of the stream, in its order, and waits for all of them.
	stream(ctx context.Context, topic string, input <-chan record) (answer, error)
	// Sends the parked records, one after the other; returns the offsets that it was told.
	park(ctx context.Context, topic string, header string) (answer, error)
	// Calls found for each record until it says that there are enough.
	read(ctx context.Context, topic string, partitions int, found func(record) bool) error
}

func main() {
	name, task, address := os.Args[1], os.Args[2], os.Args[3]
	subject := "clients"
	if len(os.Args) > 4 {
		subject = os.Args[4]
	}
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	var asked client = franz{address}
	if name == "sarama" {
		asked = saramaClient{address}
	}
	begun := time.Now()
	told, err := run(ctx, asked, task, subject)
	if told == nil {
		told = answer{}
	}
	if err != nil {
		told["error"] = err.Error()
	}
	told["seconds"] = time.Since(begun).Seconds()
	if err := json.NewEncoder(os.Stdout).Encode(told); err != nil {
		os.Exit(1)
	}
}

func run(ctx context.Context, asked client, task string, subject string) (answer, error) {
	switch task {
	case "produce":
		return asked.produce(ctx, subject)
	case "consume":
		return asked.consume(ctx, subject)
	case "transactions":
		return asked.transactions(ctx)
	case "new-protocol":
		return asked.newProtocol(ctx, subject)
	case "stream":
		return asked.stream(ctx, subject, lines(os.Stdin))
	case "read":
		return readCounts(ctx, asked, subject, strings.Split(os.Args[5], ","))
	case "park":
		header := ""
		if len(os.Args) > 5 {
			header = os.Args[5]
		}
		return asked.park(ctx, subject, header)
	default:
		return asked.admin(ctx, subject)
	}
}

func lines(input io.Reader) <-chan record {
	records := make(chan record)
	go func() {
		defer close(records)
		scanner := bufio.NewScanner(input)
		for scanner.Scan() {
			index, value, _ := strings.Cut(scanner.Text(), " ")
			partition, _ := strconv.Atoi(index)
			records <- record{partition: int32(partition), value: value}
		}
	}()
	return records
}

// Offset and value of as many records of each partition as are asked for, as they came.
func readCounts(
	ctx context.Context, asked client, topic string, counts []string,
) (answer, error) {
	read := make([][][]any, len(counts))
	left := make([]int, len(counts))
	missing := 0
	for index, count := range counts {
		left[index], _ = strconv.Atoi(count)
		missing += left[index]
	}
	err := asked.read(ctx, topic, len(counts), func(one record) bool {
		if left[one.partition] > 0 {
			left[one.partition]--
			missing--
			read[one.partition] = append(read[one.partition], []any{one.offset, one.value})
		}
		return missing == 0
	})
	return answer{"read": read}, err
}
