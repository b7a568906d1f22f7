import { expect, it } from 'vitest'
import { createSerial } from '../../../plugins/agents/serial.ts'

it('work under one key runs in order, one at a time', async () => {
  const serial = createSerial()
  const seen: string[] = []
  const step = (name: string) =>
    serial('a', async () => {
      seen.push(`${name} in`)
      await Promise.resolve()
      seen.push(`${name} out`)
    })
  await Promise.all([step('1'), step('2'), step('3')])
  expect(seen).toEqual(['1 in', '1 out', '2 in', '2 out', '3 in', '3 out'])
})

it('work under another key does not wait', async () => {
  const serial = createSerial()
  const gate = Promise.withResolvers<void>()
  const held = serial('a', () => gate.promise)
  await expect(serial('b', () => Promise.resolve('b'))).resolves.toBe('b')
  gate.resolve()
  await held
})

it('a failure reaches its caller and stops nobody behind it', async () => {
  const serial = createSerial()
  const failing = serial('a', () => Promise.reject(new Error('no')))
  const next = serial('a', () => Promise.resolve('yes'))
  await expect(failing).rejects.toThrow('no')
  await expect(next).resolves.toBe('yes')
})
