package main

import (
	"context"
	"errors"
	"sort"
	"strconv"
	"time"

	"github.com/IBM/sarama"
)

type saramaClient struct{ address string }

func (s saramaClient) config() *sarama.Config {
	config := sarama.NewConfig()
	config.Version = sarama.MaxVersion
	config.Producer.Return.Successes = true
	config.Producer.Idempotent = true
	config.Producer.RequiredAcks = sarama.WaitForAll
	config.Net.MaxOpenRequests = 1
	config.Consumer.Offsets.Initial = sarama.OffsetOldest
	config.Consumer.Offsets.AutoCommit.Enable = false
	config.Consumer.MaxWaitTime = 50 * time.Millisecond
	// By itself it asks 50 times, 100 ms apart, before it tells the error.
	config.Producer.Transaction.Retry.Max = 2
	return config
}

func (s saramaClient) produce(_ context.Context, topic string) (answer, error) {
	producer, err := sarama.NewSyncProducer([]string{s.address}, s.config())
	if err != nil {
		return nil, err
	}
	defer producer.Close()
	batch := make([]*sarama.ProducerMessage, records)
	for number := range batch {
		value := sarama.StringEncoder(strconv.Itoa(number))
		batch[number] = &sarama.ProducerMessage{Topic: topic, Value: value}
	}
	return answer{"acknowledged": len(batch)}, producer.SendMessages(batch)
}

// Collects a group's records until there are enough of them, then commits.
type reader struct {
	values []int
	done   context.CancelFunc
}

func (*reader) Setup(sarama.ConsumerGroupSession) error   { return nil }
func (*reader) Cleanup(sarama.ConsumerGroupSession) error { return nil }

func (r *reader) ConsumeClaim(
	session sarama.ConsumerGroupSession, claim sarama.ConsumerGroupClaim,
) error {
	for message := range claim.Messages() {
		number, _ := strconv.Atoi(string(message.Value))
		r.values = append(r.values, number)
		session.MarkMessage(message, "")
		if len(r.values) == records {
			session.Commit()
			r.done()
		}
	}
	return nil
}

func (s saramaClient) consume(ctx context.Context, name string) (answer, error) {
	group, err := sarama.NewConsumerGroup([]string{s.address}, name, s.config())
	if err != nil {
		return nil, err
	}
	defer group.Close()
	until, done := context.WithCancel(ctx)
	defer done()
	found := &reader{done: done}
	if err := group.Consume(until, []string{name}, found); err != nil {
		return nil, err
	}
	admin, err := sarama.NewClusterAdmin([]string{s.address}, s.config())
	if err != nil {
		return nil, err
	}
	defer admin.Close()
	committed, err := admin.ListConsumerGroupOffsets(name, map[string][]int32{name: {0}})
	if err != nil {
		return nil, err
	}
	sort.Ints(found.values)
	return answer{"read": found.values, "committed": committed.GetBlock(name, 0).Offset}, nil
}

func (s saramaClient) stream(
	_ context.Context, topic string, input <-chan record,
) (answer, error) {
	config := s.config()
	config.Producer.Partitioner = sarama.NewManualPartitioner
	// By itself it gives a record up after three tries within half a second.
	config.Producer.Retry.Max = 1_000
	producer, err := sarama.NewSyncProducer([]string{s.address}, config)
	if err != nil {
		return nil, err
	}
	defer producer.Close()
	sent := 0
	for one := range input {
		value := sarama.StringEncoder(one.value)
		message := sarama.ProducerMessage{Topic: topic, Partition: one.partition, Value: value}
		if _, _, err := producer.SendMessage(&message); err != nil {
			return nil, err
		}
		sent++
	}
	return answer{"acknowledged": sent}, nil
}

func (s saramaClient) park(_ context.Context, topic string, header string) (answer, error) {
	config := s.config()
	config.Producer.Partitioner = sarama.NewManualPartitioner
	producer, err := sarama.NewSyncProducer([]string{s.address}, config)
	if err != nil {
		return nil, err
	}
	defer producer.Close()
	begun := time.Now()
	offsets := []int64{}
	for index, value := range parked {
		due := begun.Add(parkedFor[index])
		one := &sarama.ProducerMessage{
			Topic: topic, Value: sarama.StringEncoder(value), Timestamp: due,
		}
		if header != "" {
			one.Timestamp = begun
			at := []byte(strconv.FormatInt(due.UnixMilli(), 10))
			one.Headers = []sarama.RecordHeader{{Key: []byte(header), Value: at}}
		}
		_, offset, err := producer.SendMessage(one)
		if err != nil {
			return nil, err
		}
		offsets = append(offsets, offset)
	}
	return answer{"begun": begun.UnixMilli(), "offsets": offsets}, nil
}

func (s saramaClient) read(
	ctx context.Context, topic string, partitions int, found func(record) bool,
) error {
	consumer, err := sarama.NewConsumer([]string{s.address}, s.config())
	if err != nil {
		return err
	}
	defer consumer.Close()
	all := make(chan *sarama.ConsumerMessage)
	for index := range partitions {
		claim, err := consumer.ConsumePartition(topic, int32(index), sarama.OffsetOldest)
		if err != nil {
			return err
		}
		defer claim.AsyncClose()
		go func() {
			for one := range claim.Messages() {
				select {
				case all <- one:
				case <-ctx.Done():
				}
			}
		}()
	}
	for {
		select {
		case one := <-all:
			if found(record{one.Partition, one.Offset, string(one.Value)}) {
				return nil
			}
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

func (s saramaClient) transactions(context.Context) (answer, error) {
	config := s.config()
	config.Producer.Transaction.ID = "sarama"
	producer, err := sarama.NewSyncProducer([]string{s.address}, config)
	if err != nil {
		return nil, err
	}
	defer producer.Close()
	return nil, producer.BeginTxn()
}

func (s saramaClient) newProtocol(context.Context, string) (answer, error) {
	return nil, errors.New("sarama has no new consumer protocol")
}

func (s saramaClient) admin(_ context.Context, name string) (answer, error) {
	admin, err := sarama.NewClusterAdmin([]string{s.address}, s.config())
	if err != nil {
		return nil, err
	}
	defer admin.Close()
	topics, err := admin.ListTopics()
	if err != nil {
		return nil, err
	}
	configs, err := admin.DescribeConfig(
		sarama.ConfigResource{Type: sarama.TopicResource, Name: name},
	)
	if err != nil {
		return nil, err
	}
	groups, err := admin.ListConsumerGroups()
	if err != nil {
		return nil, err
	}
	names := []string{}
	for group := range groups {
		names = append(names, group)
	}
	sort.Strings(names)
	detail := &sarama.TopicDetail{NumPartitions: 1, ReplicationFactor: 3}
	refused := admin.CreateTopic(name+"-copies", detail, false)
	return answer{
		"partitions": topics[name].NumPartitions,
		"settings":   len(configs),
		"groups":     names,
		"copies":     refused.Error(),
	}, nil
}
