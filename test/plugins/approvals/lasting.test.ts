import { expect, it } from 'vitest'
import type { Approval } from '../../../plugins/approvals/contract.ts'
import { ApprovalService } from '../../../plugins/approvals/service.ts'
import type { ApprovalServiceDeps } from '../../../plugins/approvals/service.ts'
import { toView } from '../../../plugins/approvals/views.ts'

const device = { kind: 'device', title: 'A paired device', name: 'phone', id: 'd1' }
const person = { name: 'Ada', person: 'telegram:4711', inOwnChat: true }

/** A service with one pending request of this kind. */
function start(lasting: 0 | 1, tool = 'shell_exec') {
  const committed: unknown[] = []
  const row = { id: 'r1', state: 'pending', expires_at: '2999-01-01T00:00:00Z', needed: 1, form: null, payload: '{}' }
  const service = new ApprovalService({
    remember: () => undefined,
    isLasting: (name: string) => name === 'hand_activate',
    store: {
      find: async () => ({ ...row, tool_name: tool, lasting, standing_key: null, covers: null, content: null }),
      answer: async (_row: unknown, state: string) => [state],
      commit: async (...statements: unknown[]) => void committed.push(statements[0]),
    },
    audit: { entry: () => ({}) },
    clock: { now: () => 0, after: () => () => undefined },
    resolved: () => undefined,
  } as unknown as ApprovalServiceDeps)
  return { service, committed }
}

it('what is lasting is approved with the API key only, and rejected by anybody', async () => {
  const { service, committed } = start(1)
  await expect(service.approve('r1', device)).rejects.toThrow('A paired device cannot do this: use the API key')
  await expect(service.approve('r1', person)).rejects.toMatchObject({ code: 'forbidden' })
  await expect(service.approve('r1', 'somebody')).rejects.toMatchObject({ code: 'forbidden' })
  expect(committed).toEqual([])
  await service.approve('r1', { kind: 'operator' })
  await service.reject('r1', device)
  const other = start(0)
  await other.service.approve('r1', device)
  expect([committed, other.committed]).toEqual([['approved', 'rejected'], ['approved']])
})

it('shows no scope to whoever cannot approve it', () => {
  const approval = { payload: {}, needed: 1, standing: { covers: 'the same' } }
  const scopes = (lasting: boolean, holdsKey: boolean) =>
    toView({ ...approval, lasting } as unknown as Approval, { holdsKey, standing: holdsKey }).scopes
  expect(scopes(true, true)).toEqual(['once', 'session'])
  expect(scopes(true, false)).toEqual([])
  expect(scopes(false, false)).toEqual(['once'])
})

it('a call of a tool whose effect is lasting is approved by who may cause that effect: the API key', async () => {
  const { service, committed } = start(0, 'hand_activate')
  const user = { kind: 'session', title: 'A signed-in session', name: 'ada', id: 's1' }
  for (const by of [device, user, person])
    await expect(service.approve('r1', by)).rejects.toMatchObject({ code: 'forbidden' })
  expect(committed).toEqual([])
  await service.approve('r1', { kind: 'operator' })
  await service.reject('r1', user)
  expect(committed).toEqual(['approved', 'rejected'])
})
