package main

import (
	"context"
	"fmt"
	"sort"
	"strconv"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

type franz struct{ address string }

func (f franz) open(options ...kgo.Opt) (*kgo.Client, error) {
	return kgo.NewClient(append(options, kgo.SeedBrokers(f.address))...)
}

func (f franz) produce(ctx context.Context, topic string) (answer, error) {
	client, err := f.open(kgo.AllowAutoTopicCreation())
	if err != nil {
		return nil, err
	}
	defer client.Close()
	batch := make([]*kgo.Record, records)
	for number := range batch {
		batch[number] = &kgo.Record{Topic: topic, Value: []byte(strconv.Itoa(number))}
	}
	results := client.ProduceSync(ctx, batch...)
	return answer{"acknowledged": len(results)}, results.FirstErr()
}

// Reads all records as the only member of a group, commits, and asks what is committed.
func (f franz) consume(ctx context.Context, name string) (answer, error) {
	client, err := f.open(
		kgo.ConsumeTopics(name),
		kgo.ConsumerGroup(name),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()),
		kgo.DisableAutoCommit(),
	)
	if err != nil {
		return nil, err
	}
	defer client.Close()
	values := []int{}
	for len(values) < records {
		fetches := client.PollFetches(ctx)
		if err := fetches.Err(); err != nil {
			return nil, err
		}
		fetches.EachRecord(func(record *kgo.Record) {
			number, _ := strconv.Atoi(string(record.Value))
			values = append(values, number)
		})
	}
	if err := client.CommitUncommittedOffsets(ctx); err != nil {
		return nil, err
	}
	admin := kadm.NewClient(client)
	committed, err := admin.FetchOffsets(ctx, name)
	if err != nil {
		return nil, err
	}
	var total int64
	committed.Each(func(each kadm.OffsetResponse) { total += each.At })
	sort.Ints(values)
	return answer{"read": values, "committed": total}, nil
}

func (f franz) stream(ctx context.Context, topic string, input <-chan record) (answer, error) {
	client, err := f.open(kgo.RecordPartitioner(kgo.ManualPartitioner()))
	if err != nil {
		return nil, err
	}
	defer client.Close()
	sent := 0
	var refused kgo.FirstErrPromise
	for one := range input {
		sent++
		client.Produce(
			ctx,
			&kgo.Record{Topic: topic, Partition: one.partition, Value: []byte(one.value)},
			refused.Promise(),
		)
	}
	return answer{"acknowledged": sent}, refused.Err()
}

func (f franz) park(ctx context.Context, topic string, header string) (answer, error) {
	client, err := f.open(kgo.RecordPartitioner(kgo.ManualPartitioner()))
	if err != nil {
		return nil, err
	}
	defer client.Close()
	begun := time.Now()
	offsets := []int64{}
	for index, value := range parked {
		due := begun.Add(parkedFor[index])
		one := &kgo.Record{Topic: topic, Value: []byte(value), Timestamp: due}
		if header != "" {
			one.Timestamp = begun
			at := []byte(strconv.FormatInt(due.UnixMilli(), 10))
			one.Headers = []kgo.RecordHeader{{Key: header, Value: at}}
		}
		sent, err := client.ProduceSync(ctx, one).First()
		if err != nil {
			return nil, err
		}
		offsets = append(offsets, sent.Offset)
	}
	return answer{"begun": begun.UnixMilli(), "offsets": offsets}, nil
}

func (f franz) read(
	ctx context.Context, topic string, partitions int, found func(record) bool,
) error {
	offsets := map[int32]kgo.Offset{}
	for index := range partitions {
		offsets[int32(index)] = kgo.NewOffset().AtStart()
	}
	client, err := f.open(kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{topic: offsets}))
	if err != nil {
		return err
	}
	defer client.Close()
	isEnough := false
	for !isEnough {
		fetches := client.PollFetches(ctx)
		if err := fetches.Err(); err != nil {
			return err
		}
		fetches.EachRecord(func(one *kgo.Record) {
			isEnough = found(record{one.Partition, one.Offset, string(one.Value)})
		})
	}
	return nil
}

func (f franz) transactions(ctx context.Context) (answer, error) {
	client, err := f.open(kgo.TransactionalID("franz"), kgo.AllowAutoTopicCreation())
	if err != nil {
		return nil, err
	}
	defer client.Close()
	if err := client.BeginTransaction(); err != nil {
		return nil, err
	}
	return nil, client.ProduceSync(ctx, &kgo.Record{Topic: "t", Value: []byte("v")}).FirstErr()
}

func (f franz) newProtocol(ctx context.Context, name string) (answer, error) {
	client, err := f.open()
	if err != nil {
		return nil, err
	}
	defer client.Close()
	request := kmsg.NewPtrConsumerGroupHeartbeatRequest()
	request.Group = name
	request.MemberID = "m"
	response, err := request.RequestWith(ctx, client)
	if err != nil {
		return nil, err
	}
	return nil, kerr.ErrorForCode(response.ErrorCode)
}

func (f franz) admin(ctx context.Context, name string) (answer, error) {
	client, err := f.open()
	if err != nil {
		return nil, err
	}
	defer client.Close()
	admin := kadm.NewClient(client)
	topics, err := admin.ListTopics(ctx, name)
	if err != nil {
		return nil, err
	}
	configs, err := admin.DescribeTopicConfigs(ctx, name)
	if err != nil {
		return nil, err
	}
	var partitions kadm.TopicsSet
	partitions.Add(name, topics[name].Partitions.Numbers()...)
	producers, err := admin.DescribeProducers(ctx, partitions)
	if err != nil {
		return nil, err
	}
	active := [][]any{}
	producers.EachProducer(func(each kadm.DescribedProducer) {
		active = append(active, []any{each.ProducerEpoch, each.LastSequence, each.CoordinatorEpoch})
	})
	listed, err := kmsg.NewPtrListConfigResourcesRequest().RequestWith(ctx, client)
	if err != nil {
		return nil, err
	}
	resources := []string{}
	for _, each := range listed.ConfigResources {
		if each.Type != int8(kmsg.ConfigResourceTypeTopic) || each.Name == name {
			resources = append(resources, fmt.Sprintf("%d %s", each.Type, each.Name))
		}
	}
	groups, err := admin.ListGroups(ctx)
	if err != nil {
		return nil, err
	}
	_, refused := admin.CreateTopic(ctx, 1, 3, nil, name+"-copies")
	return answer{
		"partitions": len(topics[name].Partitions),
		"settings":   len(configs[0].Configs),
		"producers":  active,
		"resources":  resources,
		"groups":     groups.Groups(),
		"copies":     refused.Error(),
	}, nil
}
