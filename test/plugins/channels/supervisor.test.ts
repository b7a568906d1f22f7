import { describe, expect, it } from 'vitest'
import { Refusal, UpstreamFailure } from 'svc/sdk'
import type { ChannelAdapter } from 'svc/channels'
import type { Account } from '../../../plugins/channels/accounts/account.ts'
import { AccountSettings } from '../../../plugins/channels/accounts/settings.ts'
import { backoffMs } from '../../../plugins/channels/connections/backoff.ts'
import { AccountLease } from '../../../plugins/channels/connections/lease.ts'
import { AccountSupervisor } from '../../../plugins/channels/connections/supervisor.ts'
import type { SupervisorDeps } from '../../../plugins/channels/connections/supervisor.ts'
import { parse } from 'svc/sdk'
import { ManualClock } from '../../support/manual-clock.ts'
import { FakePlatform } from './platform.ts'

const account: Account = {
  channel: 'test_chat',
  id: 'default',
  enabled: true,
  source: 'file',
  settings: parse(AccountSettings, {}),
  config: { token: 'token-of-the-bot' },
}
const settings = {
  open_timeout_secs: 30,
  close_timeout_ms: 1500,
  reconnect_min_ms: 1000,
  reconnect_max_ms: 60_000,
  stable_ms: 60_000,
  lease_secs: 30,
}
const unreachable = () => Promise.reject(new Error('no network in this test'))
const quiet = { error: () => undefined, warn: () => undefined, info: () => undefined, debug: () => undefined }

/** The lease of one account in memory, as the table holds it. */
class LeaseTable {
  #row: { id: string; beats: number } | undefined
  fails = false
  async renewLease(_channel: string, _account: string, holder: string) {
    if (this.fails) throw new Error('the database is locked')
    if (this.#row?.id !== holder) return false
    this.#row = { id: holder, beats: this.#row.beats + 1 }
    return true
  }
  async holderOf() {
    return this.#row
  }
  async takeLease(_channel: string, _account: string, holder: string, dead?: { id: string; beats: number }) {
    if (dead ? this.#row?.id !== dead.id || this.#row.beats !== dead.beats : (this.#row?.id ?? holder) !== holder)
      return false
    this.#row = { id: holder, beats: (this.#row?.beats ?? 0) + 1 }
    return true
  }
  async releaseLease(_channel: string, _account: string, holder: string) {
    if (this.#row?.id === holder) this.#row = undefined
  }
  steal(): void {
    this.#row = { id: 'other', beats: 0 }
  }
}

/** A lease that nobody else wants, whatever steps the clock makes. */
const kept = { acquire: async () => new AbortController().signal, release: async () => undefined }

function stage(overrides: Partial<ChannelAdapter> = {}, deps: Partial<SupervisorDeps> = {}) {
  const clock = new ManualClock()
  const platform = new FakePlatform()
  const leases = new LeaseTable()
  const events: string[] = []
  const received: string[] = []
  let wake = (): void => undefined
  const supervisor = new AccountSupervisor({
    account,
    clock,
    settings,
    random: () => 1,
    log: quiet,
    store: {} as SupervisorDeps['store'],
    vault: {} as SupervisorDeps['vault'],
    spawnOf: () => undefined,
    networkOf: () => ({
      network: {
        fetch: unreachable,
        admit: unreachable,
        connect: unreachable,
        startTls: unreachable,
        webSocket: unreachable,
      },
    }),
    load: async () => platform.adapter(overrides),
    called: () => undefined,
    lease: new AccountLease({ store: leases, holder: 'me', clock, leaseMs: 30_000 }, 'test_chat', 'default'),
    receive: async (_account, _adapter, message) => void received.push(message.id),
    changed: (event, reason) => {
      events.push(reason === '' ? event : `${event}: ${reason}`)
      wake()
    },
    ...deps,
  })
  const state = (): string => supervisor.status.state
  /** Settles when promises that are ready have run. */
  const settled = () => new Promise((resolve) => setImmediate(resolve))
  const until = async (wanted: string): Promise<void> => {
    for (let turn = 0; turn < 50 && state() !== wanted; turn++) await settled()
    expect(state()).toBe(wanted)
  }
  return {
    clock,
    platform,
    leases,
    events,
    received,
    supervisor,
    state,
    until,
    settled,
    onChange: (run: () => void) => (wake = run),
  }
}
type Stage = ReturnType<typeof stage>
const message = (id: string) => ({
  id,
  chat: { id: 'c', kind: 'direct' as const },
  sender: { id: 'u', name: 'Ada' },
  text: 'hi',
  attachments: [],
  mentionsBot: true,
  sentAt: '2026-01-01T00:00:00.000Z',
})
const connect = async (at: Stage): Promise<Stage> => {
  at.supervisor.start()
  await at.until('connected')
  return at
}

describe('a connection', () => {
  it.each([
    [true, 'needs_login'],
    [false, 'misconfigured'],
  ])('whose credentials are refused needs a login only if its account signs in: %s', async (usesSignIn, state) => {
    const refused = new UpstreamFailure('test_chat', 'the token was revoked', { reason: 'auth', retry: 'never' })
    const at = stage({
      signIn: async function* () {},
      usesSignIn: () => usesSignIn,
      open: () => Promise.reject(refused),
    })
    at.supervisor.start()
    await at.until(state)
  })

  it('that is lost is opened again after a pause that grows, and begins anew after a stable minute', async () => {
    const at = await connect(stage())
    for (const pause of [1000, 2000, 4000]) {
      at.platform.close({ retry: 'later', reason: 'the platform went away' })
      await at.until('backing_off')
      expect(at.supervisor.status).toMatchObject({
        lastError: 'the platform went away',
        nextRetryAt: at.clock.now() + pause,
      })
      at.clock.advance(pause - 1)
      await at.settled()
      expect(at.state()).toBe('backing_off')
      at.clock.advance(1)
      await at.until('connected')
    }
    at.clock.advance(60_000)
    at.platform.close({ retry: 'later', reason: 'again' })
    await at.until('backing_off')
    expect(at.supervisor.status.nextRetryAt).toBe(at.clock.now() + 1000)
    await at.supervisor.stop('the test ends')
    expect(at.clock.waiting).toBe(0)
  })

  it('waits as long as the platform asks for', async () => {
    const at = await connect(stage())
    at.platform.close({ retry: 'later', reason: 'slow down', retryAfterSecs: 90 })
    await at.until('backing_off')
    expect(at.supervisor.status.nextRetryAt).toBe(at.clock.now() + 90_000)
    await at.supervisor.stop('the test ends')
  })

  it.each([
    ['rejected credentials', new UpstreamFailure('x', 'no', { reason: 'auth', retry: 'never' }), {}, 'misconfigured'],
    [
      'rejected credentials where one signs in',
      new UpstreamFailure('x', 'no', { reason: 'auth', retry: 'never' }),
      { signIn: async function* () {} },
      'needs_login',
    ],
    ['an address that is refused', new Refusal('forbidden', 'private address'), {}, 'misconfigured'],
    [
      'a package that is missing',
      Object.assign(new Error("Cannot find package '@scope/sdk' imported from x"), { code: 'ERR_MODULE_NOT_FOUND' }),
      {},
      'missing_dependency',
    ],
  ])('ends for good with %s', async (_, error, overrides, state) => {
    const at = stage(overrides as Partial<ChannelAdapter>)
    at.platform.onOpen = () => Promise.reject(error)
    at.supervisor.start()
    await at.until(state)
    at.clock.advance(3_600_000)
    await at.settled()
    expect([at.platform.links.length, at.state()]).toEqual([1, state])
    await at.supervisor.stop('the test ends')
  })

  it.each([
    ['a field it needs', { token: 'BOT_TOKEN' }, {}, 'misconfigured'],
    ['another field', { rooms: 'BOT_ROOMS' }, { token: 'token-of-the-bot' }, 'connected'],
  ])('says which variable is not set that %s is to be in', async (_what, unsetVariables, config, state) => {
    const at = stage({}, { account: { ...account, config, unsetVariables } })
    at.supervisor.start()
    await at.until(state)
    const said = [at.supervisor.status.lastError, ...at.supervisor.warnings()].join('\n')
    expect(said).toMatch(
      /(token_env names the variable BOT_TOKEN|rooms_env names the variable BOT_ROOMS), which was not set/,
    )
  })

  it('that fails with a page of a proxy in place of an answer is tried again', async () => {
    const at = stage()
    at.platform.onOpen = () =>
      Promise.reject(new UpstreamFailure('x', 'sent HTML', { reason: 'malformed', retry: 'never' }))
    at.supervisor.start()
    await at.until('backing_off')
    at.platform.onOpen = async () => undefined
    at.clock.advance(1000)
    await at.until('connected')
    await at.supervisor.stop('the test ends')
  })

  it('of an adapter that throws something else is an error, and is tried again', async () => {
    const at = stage()
    at.platform.onOpen = () => Promise.reject(new TypeError('x is undefined of token-of-the-bot'))
    at.supervisor.start()
    await at.until('error')
    expect(at.supervisor.status.lastError).toBe('the adapter failed: x is undefined of ***')
    at.platform.onOpen = async () => undefined
    at.clock.advance(1000)
    await at.until('connected')
    await at.supervisor.stop('the test ends')
  })

  it('that does not open in time is given up, and ended when it opens later', async () => {
    const at = stage({}, { lease: kept })
    const late = Promise.withResolvers<void>()
    at.platform.onOpen = () => late.promise
    at.supervisor.start()
    await at.settled()
    at.clock.advance(30_000)
    await at.until('backing_off')
    expect(at.supervisor.status.lastError).toContain('did not connect within 30 seconds')
    late.resolve()
    await expect.poll(() => at.platform.disposed).toBe(1)
    expect(at.events).toEqual([])
    await at.supervisor.stop('the test ends')
  })
})

describe('signs of the platform', () => {
  it('keep a connection; without any it is lost, whatever messages come', async () => {
    const at = await connect(stage({ silenceMs: 30_000 }, { lease: kept }))
    for (let beat = 0; beat < 4; beat++) {
      at.clock.advance(20_000)
      at.platform.links[0]?.heard()
    }
    await at.settled()
    expect(at.state()).toBe('connected')
    at.clock.advance(20_000)
    await at.platform.links[0]?.receive(message('m1'))
    at.clock.advance(10_000)
    await at.until('backing_off')
    expect(at.supervisor.status).toMatchObject({ lastError: 'nothing was heard for 30 seconds', messagesReceived: 1 })
    await at.supervisor.stop('the test ends')
  })

  it('of an earlier connection change nothing', async () => {
    const at = await connect(stage({ silenceMs: 30_000 }))
    const [old] = at.platform.links
    at.platform.close({ retry: 'later', reason: 'lost' })
    await at.until('backing_off')
    at.clock.advance(1000)
    await at.until('connected')
    await expect(old?.receive(message('late'))).rejects.toThrow('the connection has ended')
    expect(at.received).toEqual([])
    at.clock.advance(29_999)
    old?.heard()
    at.clock.advance(1)
    await at.until('backing_off')
    await at.supervisor.stop('the test ends')
  })
})

describe('the end of an account', () => {
  it('is prompt: waits end, and an adapter that hangs or throws costs only itself', async () => {
    const at = await connect(stage())
    at.platform.onDispose = () => new Promise(() => undefined)
    const waiting = at.platform.links[0]?.sleep(1_000_000)
    const stopped = at.supervisor.stop('the test ends')
    await expect(waiting).rejects.toThrow()
    await at.settled()
    at.clock.advance(1500)
    await stopped
    const other = await connect(stage())
    other.platform.onDispose = () => Promise.reject(new Error('broken'))
    await other.supervisor.stop('the test ends')
    expect([at.clock.waiting, other.clock.waiting]).toEqual([0, 0])
  })

  it('ends an attempt that is under way', async () => {
    const at = stage()
    at.platform.onOpen = (link) => link.sleep(1_000_000)
    at.supervisor.start()
    await at.settled()
    await at.supervisor.stop('the test ends')
    expect(at.clock.waiting).toBe(0)
  })
})

describe('the lease of an account', () => {
  it('leaves a second daemon passive until the first one lets go or dies', async () => {
    const at = await connect(stage())
    const second = new AccountLease({ store: at.leases, holder: 'second', clock: at.clock, leaseMs: 30_000 }, 'x', 'y')
    for (let tick = 0; tick < 6; tick++) {
      expect(await second.acquire()).toBeUndefined()
      at.clock.advance(10_000)
      await at.settled()
    }
    at.leases.fails = true
    at.clock.advance(10_000)
    await at.settled()
    expect(at.state()).toBe('connected')
    at.leases.fails = false
    await at.supervisor.stop('the test ends')
    expect(await second.acquire()).toBeInstanceOf(AbortSignal)
    await second.release()
  })

  it('is taken over from a daemon that stands still, whatever the clocks say', async () => {
    const at = await connect(stage())
    const other = new ManualClock()
    const second = new AccountLease({ store: at.leases, holder: 'second', clock: other, leaseMs: 30_000 }, 'x', 'y')
    // Its clock is a day ahead, which makes nobody look dead.
    other.advance(86_400_000)
    for (let beat = 0; beat < 4; beat++) {
      expect(await second.acquire()).toBeUndefined()
      at.clock.advance(10_000)
      await at.settled()
    }
    // It stands still: three beats of the second one later the lease is over.
    for (let beat = 0; beat < 3; beat++) expect(await second.acquire()).toBeUndefined()
    expect(await second.acquire()).toBeInstanceOf(AbortSignal)
    // It wakes up.
    at.clock.advance(10_000)
    await at.until('backing_off')
    await at.supervisor.stop('the test ends')
    await second.release()
  })

  it('is given up before another daemon may take it, where it cannot be renewed', async () => {
    const at = await connect(stage())
    at.leases.fails = true
    for (const [ms, state] of [
      [10_000, 'connected'],
      [10_000, 'connected'],
      [4_000, 'backing_off'],
    ] as const) {
      at.clock.advance(ms)
      await at.settled()
      await at.until(state)
    }
    await at.supervisor.stop('the test ends')
  })

  it('ends the connection when it is lost, and says why', async () => {
    const lines: string[] = []
    const log = { ...quiet, warn: (line: string) => lines.push(line), info: (line: string) => lines.push(line) }
    const at = await connect(stage({}, { log }))
    expect(lines).toEqual([])
    at.leases.steal()
    at.clock.advance(10_000)
    await at.until('backing_off')
    at.clock.advance(1000)
    await at.until('standby')
    const lost = expect.stringMatching(/lost the account: another daemon on this database has taken over/)
    expect(lines).toEqual([lost])
    expect(at.supervisor.status.lastError).toContain('another daemon on the same database')
    expect(at.platform.disposed).toBe(1)
    await at.leases.releaseLease('test_chat', 'default', 'other')
    at.supervisor.retry()
    await at.until('connected')
    expect(lines).toEqual([lost, expect.stringContaining('this daemon has the account again')])
    await at.supervisor.stop('the test ends')
  })
})

it('an error of sending counts; rejected credentials end the connection', async () => {
  const at = await connect(stage())
  at.supervisor.open?.failed(new UpstreamFailure('x', 'busy', { reason: 'overloaded', retry: 'later' }))
  expect(at.supervisor.status).toMatchObject({ state: 'connected', failed: 1, lastError: 'busy' })
  at.supervisor.open?.failed(new UpstreamFailure('x', 'revoked', { reason: 'auth', retry: 'never' }))
  await at.until('misconfigured')
  expect(at.events).toEqual(['connected', 'disconnected: lost', 'ended: revoked'])
  await at.supervisor.stop('the test ends')
})

it('the pause has full jitter, a limit, and is no shorter than the platform asks for', () => {
  const options = { minMs: 1000, maxMs: 60_000 }
  expect(backoffMs(3, undefined, { ...options, random: () => 0.5 })).toBe(4000)
  expect(backoffMs(0, undefined, { ...options, random: () => 0 })).toBe(0)
  expect(backoffMs(50, undefined, { ...options, random: () => 1 })).toBe(60_000)
  expect(backoffMs(0, 7, { ...options, random: () => 1 })).toBe(7000)
})
