// kafkajs against a broker: what it does is one line of JSON on stdout.
//
//   node clients.js TASK ADDRESS [NAME [COUNT,COUNT... | HEADER]]
//
// TASK is produce, consume, transactions, admin, stream, read or park; NAME is the topic, and the
// group of those that consume.  A task that fails is a field "error".  A stream sends what standard
// input holds, lines of a partition and a value; read tells the first COUNT records of each
// partition.  Park sends the records "first" and "second", which are due in two seconds and in two
// and a half, each by its timestamp, or by the HEADER if one is named, and tells their offsets as
// kafkajs gives them.
// NODE_PATH says where kafkajs is.
const readline = require("readline");
const { Kafka, logLevel } = require("kafkajs");

const RECORDS = 100;

async function produce(kafka, topic) {
  const producer = kafka.producer({ idempotent: true, maxInFlightRequests: 1 });
  await producer.connect();
  const messages = Array.from({ length: RECORDS }, (_, number) => ({ value: String(number) }));
  await producer.send({ topic, messages });
  await producer.disconnect();
  return { acknowledged: RECORDS };
}

// Reads all records as the only member of a group, commits, and asks what is committed.
async function consume(kafka, name) {
  const consumer = kafka.consumer({ groupId: name, maxWaitTimeInMs: 50 });
  await consumer.connect();
  await consumer.subscribe({ topics: [name], fromBeginning: true });
  const values = [];
  await new Promise((done, failed) => {
    consumer
      .run({
        autoCommit: false,
        eachMessage: async ({ topic, partition, message }) => {
          values.push(Number(message.value.toString()));
          if (values.length === RECORDS) {
            const offset = String(Number(message.offset) + 1);
            await consumer.commitOffsets([{ topic, partition, offset }]);
            done();
          }
        },
      })
      .catch(failed);
    consumer.on(consumer.events.CRASH, (event) => failed(event.payload.error));
  });
  const admin = kafka.admin();
  await admin.connect();
  const [committed] = await admin.fetchOffsets({ groupId: name, topics: [name] });
  await consumer.disconnect();
  await admin.disconnect();
  values.sort((one, other) => one - other);
  return { read: values, committed: Number(committed.partitions[0].offset) };
}

async function stream(kafka, topic) {
  const producer = kafka.producer({ idempotent: true, maxInFlightRequests: 1 });
  await producer.connect();
  let acknowledged = 0;
  for await (const line of readline.createInterface({ input: process.stdin })) {
    const space = line.indexOf(" ");
    const message = { partition: Number(line.slice(0, space)), value: line.slice(space + 1) };
    await producer.send({ topic, messages: [message] });
    acknowledged += 1;
  }
  await producer.disconnect();
  return { acknowledged };
}

async function park(kafka, topic, header) {
  const producer = kafka.producer({ idempotent: true, maxInFlightRequests: 1 });
  await producer.connect();
  const begun = Date.now();
  const offsets = [];
  for (const [value, afterMs] of [["first", 2_000], ["second", 2_500]]) {
    const due = String(begun + afterMs);
    const message = { partition: 0, value, timestamp: header ? String(begun) : due };
    if (header) {
      message.headers = { [header]: due };
    }
    const [sent] = await producer.send({ topic, messages: [message] });
    offsets.push(Number(sent.baseOffset));
  }
  await producer.disconnect();
  return { begun, offsets };
}

// It reads as a member of groups only; this one has no other.  When its group begins anew, so does
// it, and passes over what it has told.
async function read(kafka, topic, counts) {
  const left = counts.split(",").map(Number);
  const found = left.map(() => []);
  const groupId = `read-${topic}-${process.pid}`;
  const consumer = kafka.consumer({ groupId, maxWaitTimeInMs: 50 });
  await consumer.connect();
  await consumer.subscribe({ topics: [topic], fromBeginning: true });
  await new Promise((done, failed) => {
    consumer
      .run({
        autoCommit: false,
        eachMessage: async ({ partition, message }) => {
          const offset = Number(message.offset);
          const told = found[partition];
          if (left[partition] > 0 && (told.length === 0 || offset > told[told.length - 1][0])) {
            left[partition] -= 1;
            told.push([offset, message.value.toString()]);
          }
          if (left.every((count) => count === 0)) {
            done();
          }
        },
      })
      .catch(failed);
    consumer.on(consumer.events.CRASH, (event) => {
      if (!event.payload.restart) {
        failed(event.payload.error);
      }
    });
  });
  await consumer.disconnect();
  return { read: found };
}

async function transactions(kafka) {
  const producer = kafka.producer({ transactionalId: "kafkajs", maxInFlightRequests: 1 });
  try {
    await producer.connect();
    await producer.transaction();
  } finally {
    await producer.disconnect();
  }
  return {};
}

async function administer(kafka, name) {
  const admin = kafka.admin();
  await admin.connect();
  try {
    const { topics } = await admin.fetchTopicMetadata({ topics: [name] });
    const { resources } = await admin.describeConfigs({
      includeSynonyms: true,
      resources: [{ type: 2, name }],
    });
    const { groups } = await admin.listGroups();
    const copies = await admin
      .createTopics({ topics: [{ topic: `${name}-copies`, numPartitions: 1, replicationFactor: 3 }] })
      .then(() => "created", (error) => error.errors[0].message);
    return {
      partitions: topics[0].partitions.length,
      settings: resources[0].configEntries.length,
      groups: groups.map((one) => one.groupId).sort(),
      copies,
    };
  } finally {
    await admin.disconnect();
  }
}

const TASKS = { produce, consume, transactions, admin: administer, stream, read, park };

async function main() {
  const [task, address, name, counts] = process.argv.slice(2);
  const kafka = new Kafka({
    brokers: [address],
    clientId: "kafkajs",
    // By itself it waits for a second.
    connectionTimeout: 60_000,
    logLevel: logLevel.NOTHING,
  });
  const begun = Date.now();
  let told;
  try {
    told = await TASKS[task](kafka, name || "clients", counts);
  } catch (error) {
    told = { error: error.message };
  }
  told.seconds = (Date.now() - begun) / 1000;
  console.log(JSON.stringify(told));
  process.exit(0);
}

main();
