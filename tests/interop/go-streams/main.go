// A stream processor of goka: for each key the distinct numbers that came, in its group's table.
//
//	streams ADDRESS FROM GROUP
//
// It runs until standard input ends.  A number that comes again changes nothing, so that what the
// table says is the same however often a record is delivered.
package main

import (
	"context"
	"io"
	"log"
	"os"
	"sort"
	"strings"
	"time"

	"github.com/IBM/sarama"
	"github.com/lovoo/goka"
	"github.com/lovoo/goka/codec"
	"github.com/lovoo/goka/storage"
)

func gather(ctx goka.Context, message any) {
	number := message.(string)
	var numbers []string
	if value := ctx.Value(); value != nil {
		numbers = strings.Split(value.(string), ",")
	}
	place := sort.SearchStrings(numbers, number)
	if place < len(numbers) && numbers[place] == number {
		return
	}
	numbers = append(numbers, "")
	copy(numbers[place+1:], numbers[place:])
	numbers[place] = number
	ctx.SetValue(strings.Join(numbers, ","))
}

func run(ctx context.Context, address, from, group string) error {
	config := goka.DefaultConfig()
	config.Version = sarama.V2_8_0_0
	config.Consumer.Offsets.Initial = sarama.OffsetOldest
	config.Consumer.Group.Session.Timeout = 6 * time.Second
	config.Metadata.Retry.Max = 100
	config.Producer.Retry.Max = 100
	// What is tried again must not come behind what was sent after it: the last value of a key counts.
	// One request at a time does not keep sarama from that, sequences do.
	config.Net.MaxOpenRequests = 1
	config.Producer.Idempotent = true
	config.Producer.RequiredAcks = sarama.WaitForAll
	goka.ReplaceGlobalConfig(config)
	topics := goka.NewTopicManagerConfig()
	topics.Table.Replication = 1
	graph := goka.DefineGroup(
		goka.Group(group),
		goka.Input(goka.Stream(from), new(codec.String), gather),
		goka.Persist(new(codec.String)),
	)
	processor, err := goka.NewProcessor(
		[]string{address}, graph,
		goka.WithStorageBuilder(storage.MemoryBuilder()),
		goka.WithTopicManagerBuilder(goka.TopicManagerBuilderWithTopicManagerConfig(topics)),
	)
	if err != nil {
		return err
	}
	return processor.Run(ctx)
}

func main() {
	ctx, cancel := context.WithCancel(context.Background())
	go func() {
		io.Copy(io.Discard, os.Stdin)
		cancel()
	}()
	// A processor ends when its broker does; whoever runs one starts it again.
	for ctx.Err() == nil {
		if err := run(ctx, os.Args[1], os.Args[2], os.Args[3]); err != nil {
			log.Print(err)
			time.Sleep(200 * time.Millisecond)
		}
	}
}
