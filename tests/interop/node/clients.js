// kafkajs against a broker: what it does is one line of JSON on stdout.
//
//   node clients.js TASK ADDRESS [NAME]
//
// TASK is produce, consume, transactions or admin; NAME is the topic, and the group of those that
// consume.  A task that fails is a field "error".  NODE_PATH says where kafkajs is.
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

const TASKS = { produce, consume, transactions, admin: administer };

async function main() {
  const [task, address, name] = process.argv.slice(2);
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
    told = await TASKS[task](kafka, name || "clients");
  } catch (error) {
    told = { error: error.message };
  }
  told.seconds = (Date.now() - begun) / 1000;
  console.log(JSON.stringify(told));
  process.exit(0);
}

main();
