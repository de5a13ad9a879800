// A NestJS microservice on Kafka's transport: passes each record on under its key.
//
//     node app.mjs ADDRESS FROM TO
//
// Decorators are applied by hand, so that nothing has to be compiled.
import 'reflect-metadata';
import { Controller, Module } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { ClientKafka, Ctx, EventPattern, KafkaContext, Transport } from '@nestjs/microservices';
import { lastValueFrom } from 'rxjs';

const [address, from, to] = process.argv.slice(2);
const options = {
  client: { clientId: 'nest', brokers: [address], retry: { retries: 100, maxRetryTime: 1000 } },
  consumer: { groupId: `of-${from}`, sessionTimeout: 10000 },
  subscribe: { fromBeginning: true },
};
const passing = new ClientKafka({ ...options, producerOnlyMode: true });

class PassOn {
  async handle(context) {
    const record = context.getMessage();
    const passed = { key: record.key.toString(), value: String(record.value) };
    await lastValueFrom(passing.emit(to, passed));
  }
}
Ctx()(PassOn.prototype, 'handle', 0);
Reflect.defineMetadata('design:paramtypes', [KafkaContext], PassOn.prototype, 'handle');
EventPattern(from)(PassOn.prototype, 'handle',
  Object.getOwnPropertyDescriptor(PassOn.prototype, 'handle'));
Controller()(PassOn);

class App {}
Module({ controllers: [PassOn] })(App);

await passing.connect();
const app = await NestFactory.createMicroservice(App, { transport: Transport.KAFKA, options });
await app.listen();
