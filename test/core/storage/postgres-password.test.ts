import { once } from 'node:events'
import { createServer } from 'node:net'
import type { AddressInfo } from 'node:net'
import { expect, it } from 'vitest'
import { explainServer } from '../../../core/cli/start-failure.ts'
import { createLog } from '../../../core/log/log.ts'
import { connectPostgres, DEFAULT_SETTINGS } from '../../../core/storage/postgres-client.ts'
import { openDatabase } from '../../../core/storage/open.ts'

/** What a server that asks for a password is told, and then closes. */
async function passwordFor(address: (port: number) => string, password: string | undefined): Promise<string> {
  const told = Promise.withResolvers<string>()
  const server = createServer((socket) => {
    socket.on('error', () => undefined)
    // AuthenticationCleartextPassword, then PasswordMessage, of the protocol of PostgreSQL.
    socket.once('data', () => {
      socket.write(Buffer.from([0x52, 0, 0, 0, 8, 0, 0, 0, 3]))
      socket.once('data', (message) => {
        told.resolve(message.toString('utf8', 5, message.byteLength - 1))
        socket.destroy()
      })
    })
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  try {
    const opened = openDatabase({
      url: address((server.address() as AddressInfo).port),
      password,
      log: createLog({ level: 'silent' }),
    })
    await expect(opened).rejects.toThrow()
    return await told.promise
  } finally {
    server.close()
  }
}

it('a PostgreSQL address without a password gets the one that is given beside it, and its own goes first', async () => {
  expect(await passwordFor((port) => `postgres://me@127.0.0.1:${port}/x`, 'a pass/word')).toBe('a pass/word')
  expect(await passwordFor((port) => `postgres://me:its-own@127.0.0.1:${port}/x`, 'other')).toBe('its-own')
  expect(await passwordFor((port) => `postgres://127.0.0.1:${port}/x?password=in-query`, 'other')).toBe('in-query')
})

it('a PostgreSQL server that asks for a password, where there is none, is not one that does not answer', async () => {
  const server = createServer((socket) => {
    socket.on('error', () => undefined)
    // AuthenticationSASL and AuthenticationSASLContinue, of the protocol of PostgreSQL.
    const send = (type: number, text: string): void => {
      const head = Buffer.from([0x52, 0, 0, 0, 8 + text.length, 0, 0, 0, type])
      socket.write(Buffer.concat([head, Buffer.from(text)]))
    }
    socket.once('data', () => {
      send(10, 'SCRAM-SHA-256\0\0')
      socket.once('data', (first) => send(11, `r=${/r=(.+)$/.exec(first.toString())?.[1]}x,s=c2FsdA==,i=4096`))
    })
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  try {
    const url = `postgres://me@127.0.0.1:${(server.address() as AddressInfo).port}/x`
    const attempts = [
      () => openDatabase({ url, log: createLog({ level: 'silent' }) }),
      // As `svc database copy` connects.
      () => connectPostgres(url, DEFAULT_SETTINGS),
    ]
    for (const attempt of attempts)
      expect(explainServer(await attempt().catch((error: unknown) => error), url)).toMatchObject({
        message: expect.stringContaining('the server asks for a password'),
        advice: expect.stringContaining('PGPASSWORD'),
      })
  } finally {
    server.close()
  }
})
