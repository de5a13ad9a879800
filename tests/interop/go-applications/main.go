// Stream processors of Go that pass each record on under its key.
//
//	applications watermill|kafka-go ADDRESS FROM TO
package main

import (
	"context"
	"log"
	"os"
	"time"

	"github.com/IBM/sarama"
	"github.com/ThreeDotsLabs/watermill"
	"github.com/ThreeDotsLabs/watermill-kafka/v3/pkg/kafka"
	"github.com/ThreeDotsLabs/watermill/message"
	kafkago "github.com/segmentio/kafka-go"
)

// keyed carries the key of a record over from the consumer to the producer.
type keyed struct{ kafka.DefaultMarshaler }

func (keyed) Marshal(topic string, msg *message.Message) (*sarama.ProducerMessage, error) {
	made := &sarama.ProducerMessage{Topic: topic, Value: sarama.ByteEncoder(msg.Payload)}
	made.Key = sarama.ByteEncoder(msg.Metadata.Get("key"))
	return made, nil
}

func (keyed) Unmarshal(record *sarama.ConsumerMessage) (*message.Message, error) {
	msg := message.NewMessage(watermill.NewUUID(), record.Value)
	msg.Metadata.Set("key", string(record.Key))
	return msg, nil
}

func runWatermill(address, from, to string) error {
	logger := watermill.NewStdLogger(false, false)
	config := kafka.DefaultSaramaSubscriberConfig()
	config.Consumer.Offsets.Initial = sarama.OffsetOldest
	subscriber, err := kafka.NewSubscriber(kafka.SubscriberConfig{
		Brokers:               []string{address},
		Unmarshaler:           keyed{},
		OverwriteSaramaConfig: config,
		ConsumerGroup:         "of-" + from,
	}, logger)
	if err != nil {
		return err
	}
	publisher, err := kafka.NewPublisher(
		kafka.PublisherConfig{Brokers: []string{address}, Marshaler: keyed{}}, logger)
	if err != nil {
		return err
	}
	router, err := message.NewRouter(message.RouterConfig{}, logger)
	if err != nil {
		return err
	}
	router.AddHandler("pass-on", from, subscriber, to, publisher,
		func(msg *message.Message) ([]*message.Message, error) {
			passed := message.NewMessage(msg.UUID, msg.Payload)
			passed.Metadata = msg.Metadata
			return []*message.Message{passed}, nil
		})
	return router.Run(context.Background())
}

func runKafkaGo(address, from, to string) error {
	ctx := context.Background()
	reader := kafkago.NewReader(kafkago.ReaderConfig{
		Brokers:     []string{address},
		GroupID:     "of-" + from,
		Topic:       from,
		StartOffset: kafkago.FirstOffset,
		MaxWait:     500 * time.Millisecond,
	})
	writer := &kafkago.Writer{
		Addr:         kafkago.TCP(address),
		Topic:        to,
		Balancer:     &kafkago.Murmur2Balancer{},
		RequiredAcks: kafkago.RequireAll,
		BatchTimeout: 5 * time.Millisecond,
	}
	for {
		record, err := reader.FetchMessage(ctx)
		if err != nil {
			log.Print("fetch: ", err)
			time.Sleep(200 * time.Millisecond)
			continue
		}
		for {
			err = writer.WriteMessages(ctx, kafkago.Message{Key: record.Key, Value: record.Value})
			if err == nil {
				break
			}
			log.Print("write: ", err)
			time.Sleep(200 * time.Millisecond)
		}
		// A commit that fails is covered by the next one.
		if err = reader.CommitMessages(ctx, record); err != nil {
			log.Print("commit: ", err)
		}
	}
}

func main() {
	run := runWatermill
	if os.Args[1] == "kafka-go" {
		run = runKafkaGo
	}
	for {
		log.Print("ended: ", run(os.Args[2], os.Args[3], os.Args[4]))
		time.Sleep(200 * time.Millisecond)
	}
}
