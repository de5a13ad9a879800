// Real clients of Go against a broker: what each of them does is one line of JSON on stdout.
//
//	clients CLIENT TASK ADDRESS [NAME]
//
// CLIENT is franz-go or sarama.  TASK is produce, consume, transactions, new-protocol or admin;
// NAME is the topic, and the group of those that consume.  A task that fails is a field "error".
package main

import (
	"context"
	"encoding/json"
	"os"
	"time"
)

// Records of the tasks produce and consume, and how long a task may take.
const (
	records = 100
	limit   = 240 * time.Second
)

type answer map[string]any

type client interface {
	produce(ctx context.Context, topic string) (answer, error)
	consume(ctx context.Context, name string) (answer, error)
	transactions(ctx context.Context) (answer, error)
	newProtocol(ctx context.Context, name string) (answer, error)
	admin(ctx context.Context, name string) (answer, error)
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
	default:
		return asked.admin(ctx, subject)
	}
}
