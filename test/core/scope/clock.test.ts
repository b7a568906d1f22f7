import { expect, it } from 'vitest'
import { orAborted } from '../../../core/scope/clock.ts'

it('orAborted settles as the work does, or rejects with the reason of the signal that aborts first', async () => {
  const { signal } = new AbortController()
  await expect(orAborted(Promise.resolve('done'), signal)).resolves.toBe('done')
  await expect(orAborted(Promise.reject(new Error('no')), signal)).rejects.toThrow('no')
  const leaving = new AbortController()
  const { promise, reject } = Promise.withResolvers<string>()
  const waiting = orAborted(promise, leaving.signal)
  leaving.abort(new Error('the plugin is leaving'))
  await expect(waiting).rejects.toThrow('the plugin is leaving')
  await expect(orAborted(new Promise(() => {}), leaving.signal)).rejects.toThrow('the plugin is leaving')
  // Nobody listens any more: an unhandled rejection would end the test run.
  reject(new Error('too late'))
  await new Promise(setImmediate)
})
