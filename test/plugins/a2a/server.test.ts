import { randomUUID } from 'node:crypto'
import { TaskState } from '@a2a-js/sdk'
import type { Client } from '@a2a-js/sdk/client'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { openChat } from '../../support/chat-stage.ts'
import type { ChatStage } from '../../support/chat-stage.ts'
import { connectSdk, message, readStream, send, textOf, versions } from './stage.ts'

let stage: ChatStage
beforeAll(async () => {
  stage = await openChat({ memory: true, config: { a2a: { name: 'The desk', description: 'Answers.' } } })
  await stage.spawn('scout', ['*'])
})
afterAll(() => stage[Symbol.asyncDispose]())

/** A text whose second half a test lets go. */
function held(first: string, second: string) {
  const gate = Promise.withResolvers<void>()
  async function* text() {
    yield first
    await gate.promise
    yield second
  }
  return { text: text(), release: () => gate.resolve() }
}

describe.each(versions)('the official client in version %s', (version) => {
  let client: Client
  beforeAll(async () => {
    client = await connectSdk(stage.host, version)
  })

  it('finds the card, and with the key what the agent can do', async () => {
    expect(client.protocolVersion).toBe(version)
    const card = await client.getAgentCard()
    expect(card).toMatchObject({ name: 'The desk', description: 'Answers.', capabilities: { streaming: true } })
    const extended = await (await connectSdk(stage.host, version, 'scout')).getAgentCard()
    expect(extended.skills.map(({ id }) => id)).toEqual(expect.arrayContaining(['conversation', 'file_read']))
  })

  it('sends a message and gets the task with its answer and its history', async () => {
    stage.fake.script({ text: 'Four.' })
    const request = message('What is two and two?', {}, { historyLength: 10 })
    const task = await send(client, request)
    expect(task.status?.state).toBe(TaskState.TASK_STATE_COMPLETED)
    expect(textOf(task)).toBe('Four.')
    expect(task.history.map(({ messageId }) => messageId)).toEqual([request.message?.messageId])
    expect((await client.getTask({ tenant: '', id: task.id, historyLength: 0 })).history).toEqual([])
    const shown = await stage.host.json('GET', `/api/turns/${task.id}`)
    expect(shown.body).toMatchObject({ state: 'done', entry_point: 'a2a', text: 'Four.' })
  })

  it('goes on in a context, and a repeated message makes no second turn', async () => {
    stage.fake.script({ text: 'One.' }, { text: 'Two.' })
    const first = await send(client, message('first'))
    const next = message('second', { contextId: first.contextId })
    const second = await send(client, next)
    expect(second.contextId).toBe(first.contextId)
    const asked = stage.fake.requests.length
    const roles = stage.fake.requests.at(-1)?.body.messages?.map((one) => one?.role)
    expect(roles?.slice(-3)).toEqual(['user', 'assistant', 'user'])
    expect((await send(client, next)).id).toBe(second.id)
    expect(stage.fake.requests).toHaveLength(asked)
    const other = message('something else', { contextId: first.contextId, messageId: next.message?.messageId })
    stage.fake.script({ text: 'Three.' })
    expect((await send(client, other)).id, 'another content is another message').not.toBe(second.id)
  })

  it('does not wait when it is told not to, and cancels', async () => {
    const { text, release } = held('I am', ' done.')
    stage.fake.script({ text })
    const task = await send(client, message('slowly', {}, { returnImmediately: true }))
    expect([TaskState.TASK_STATE_SUBMITTED, TaskState.TASK_STATE_WORKING]).toContain(task.status?.state)
    await stage.fake.request(stage.fake.requests.length - 1)
    const canceled = await client.cancelTask({ tenant: '', id: task.id, metadata: undefined })
    expect(canceled.status?.state).toBe(TaskState.TASK_STATE_CANCELED)
    release()
    const again = await client.cancelTask({ tenant: '', id: task.id, metadata: undefined })
    expect(again.status?.state).toBe(TaskState.TASK_STATE_CANCELED)
    const further = message('more', { taskId: task.id, contextId: task.contextId })
    await expect(client.sendMessage(further)).rejects.toThrow(/takes no further message/)
  })

  it('streams, and whoever lost the stream gets all of it by another one', async () => {
    const { text, release } = held('Once upon', ' a time.')
    stage.fake.script({ text })
    const stream = client.sendMessageStream(message('a story'))
    const first = (await stream.next()).value
    const id = first?.payload?.$case === 'task' ? first.payload.value.id : ''
    await stream.next()
    await stream.return()
    const streams = [1, 2].map(() => client.resubscribeTask({ tenant: '', id }))
    const firsts = await Promise.all(streams.map((one) => one.next()))
    for (const { value } of firsts)
      expect(value?.payload).toMatchObject({ $case: 'task', value: { id, artifacts: [] } })
    release()
    const readers = streams.map((one) => readStream(one))
    for (const seen of await Promise.all(readers)) {
      expect(seen).toMatchObject({ answer: 'Once upon a time.', isWhole: true })
      expect(seen.states.at(-1)).toBe(TaskState.TASK_STATE_COMPLETED)
    }
    await expect(readStream(client.resubscribeTask({ tenant: '', id }))).rejects.toThrow(/nothing to follow/)
  })

  it('is told why a task failed', async () => {
    stage.fake.script({ status: 401, body: '{"error":{"message":"bad key"}}' })
    const task = await send(client, message('fail'))
    expect(task.status?.state).toBe(TaskState.TASK_STATE_FAILED)
    expect(JSON.stringify(task.status?.message)).toMatch(/key/)
    stage.fake.script({ status: 401, body: '{"error":{"message":"bad key"}}' })
    const seen = await readStream(client.sendMessageStream(message('fail again')))
    expect(seen.states.at(-1)).toBe(TaskState.TASK_STATE_FAILED)
  })

  it('gets the errors of the protocol', async () => {
    const id = randomUUID()
    await expect(client.getTask({ tenant: '', id })).rejects.toMatchObject({ reason: 'TASK_NOT_FOUND' })
    await expect(client.cancelTask({ tenant: '', id, metadata: undefined })).rejects.toMatchObject({
      reason: 'TASK_NOT_FOUND',
    })
    stage.fake.script({ text: 'done' })
    const done = await send(client, message('quick'))
    await expect(client.cancelTask({ tenant: '', id: done.id, metadata: undefined })).rejects.toMatchObject({
      reason: 'TASK_NOT_CANCELABLE',
    })
    await expect(client.sendMessage(message('x', {}, { acceptedOutputModes: ['video/mp4'] }))).rejects.toMatchObject({
      reason: 'CONTENT_TYPE_NOT_SUPPORTED',
    })
    const archive = { content: { $case: 'raw', value: Buffer.from('PK\u0003\u0004zip') }, filename: 'a.zip' }
    await expect(
      client.sendMessage(message('x', { parts: [{ ...archive, mediaType: 'application/zip', metadata: undefined }] })),
    ).rejects.toMatchObject({ reason: 'CONTENT_TYPE_NOT_SUPPORTED' })
  })

  it('sees only the tasks of an agent at its address', async () => {
    const scout = await connectSdk(stage.host, version, 'scout')
    stage.fake.script({ text: 'Scouted.' }, { text: 'Desk.' })
    const own = await send(scout, message('look'))
    const other = await send(client, message('look'))
    expect((await scout.getTask({ tenant: '', id: own.id })).id).toBe(own.id)
    expect((await client.getTask({ tenant: '', id: own.id })).id).toBe(own.id)
    await expect(scout.getTask({ tenant: '', id: other.id })).rejects.toMatchObject({ reason: 'TASK_NOT_FOUND' })
  })
})
