import { ServerResponse } from 'node:http'
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest'
import { GuardedResponse } from '../../../core/http/headers.ts'
import { Policy } from '../../../core/net/policy.ts'
import { SecretBytes } from '../../../core/storage/secret-bytes.ts'
import type * as ConfineModule from '../../../core/files/confine.ts'
import type * as GcraModule from '../../../core/limit/gcra.ts'
import type * as EnvironmentModule from '../../../core/process/environment.ts'
import type * as ScreenModule from '../../../plugins/screening/screen.ts'
import type * as EnvelopeModule from '../../../plugins/agents/signing/envelope.ts'
import type * as GuestProcessModule from '../../../plugins/wasm/guest-process.ts'
import type * as InheritModule from '../../../plugins/agents/inherit.ts'
import type * as WalkModule from '../../../plugins/audit/walk.ts'
import type * as GuardModule from '../../../plugins/chat/safety/loop-guard.ts'
import type * as RepairModule from '../../../plugins/chat/safety/history-repair.ts'
import type * as TaintModule from '../../../plugins/chat/safety/taint.ts'
import type * as MacModule from '../../../plugins/peers/mac.ts'
import type * as PublicHealthModule from '../../../plugins/system/public-health.ts'
import { systemNames } from '../../../plugins/security/contract.ts'
import { startHost } from '../../support/host.ts'
import type { Json } from '../../support/json.ts'
import type { TestHost } from '../../support/host.ts'

/** The system that is stubbed out now: its production function does nothing any more, wherever it is called. */
const broken = vi.hoisted(() => ({ system: '' }))
type Stub = (...args: Json[]) => unknown
const swap = vi.hoisted(
  () =>
    (system: string, real: (...args: Json[]) => unknown, stub: Stub) =>
    (...args: Json[]): Json =>
      broken.system === system ? stub(...args) : real(...args),
)

vi.mock('../../../plugins/audit/walk.ts', async (original) => {
  const module = await original<typeof WalkModule>()
  return {
    ...module,
    walkTrail: swap('merkle_audit_trail', module.walkTrail, () => Promise.resolve({ status: 'valid', valid: true })),
  }
})
vi.mock('../../../plugins/chat/safety/taint.ts', async (original) => {
  const module = await original<typeof TaintModule>()
  return { ...module, checkFlow: swap('taint_tracking', module.checkFlow, () => ({ allowed: true, declassified: [] })) }
})
vi.mock('../../../plugins/wasm/guest-process.ts', async (original) => {
  const module = await original<typeof GuestProcessModule>()
  // One that does not hand on how much fuel there is.
  class Unmetered extends module.GuestProcess {
    override run(request: Parameters<InstanceType<typeof module.GuestProcess>['run']>[0]) {
      return super.run(broken.system === 'wasm_dual_metering' ? { ...request, fuel: 2n ** 62n } : request)
    }
  }
  return { ...module, GuestProcess: Unmetered }
})
vi.mock('../../../plugins/system/public-health.ts', async (original) => {
  const module = await original<typeof PublicHealthModule>()
  return {
    ...module,
    publicHealth: swap('health_redaction', module.publicHealth, (health: object) => ({
      status: 'ok',
      uptime_seconds: 1,
      panic_count: 0,
      restart_count: 0,
      ...health,
    })),
  }
})
vi.mock('../../../core/process/environment.ts', async (original) => {
  const module = await original<typeof EnvironmentModule>()
  return {
    ...module,
    createEnvironment: swap('subprocess_sandbox', module.createEnvironment, () => ({ ...process.env })),
  }
})
vi.mock('../../../plugins/agents/signing/envelope.ts', async (original) => {
  const module = await original<typeof EnvelopeModule>()
  return { ...module, verifyManifest: swap('manifest_signing', module.verifyManifest, (envelope) => envelope) }
})
vi.mock('../../../core/limit/gcra.ts', async (original) => {
  const module = await original<typeof GcraModule>()
  const createLimiter: typeof module.createLimiter = (options) => {
    const limiter = module.createLimiter(options)
    const take = limiter.take
    return Object.assign(limiter, {
      take: (key: string, cost: number) => broken.system === 'gcra_rate_limiter' || take(key, cost),
    })
  }
  return { ...module, createLimiter }
})
vi.mock('../../../core/files/confine.ts', async (original) => {
  const module = await original<typeof ConfineModule>()
  return {
    ...module,
    confine: swap('path_traversal_prevention', module.confine, (root: string, name: string) =>
      Promise.resolve(`${root}/${name}`),
    ),
  }
})
vi.mock('../../../plugins/agents/inherit.ts', async (original) => {
  const module = await original<typeof InheritModule>()
  return { ...module, exceeds: swap('capability_inheritance_validation', module.exceeds, () => undefined) }
})
vi.mock('../../../plugins/peers/mac.ts', async (original) => {
  const module = await original<typeof MacModule>()
  return { ...module, isSame: swap('ofp_hmac_auth', module.isSame, () => true) }
})
vi.mock('../../../plugins/screening/screen.ts', async (original) => {
  const module = await original<typeof ScreenModule>()
  return {
    ...module,
    screen: swap('prompt_injection_scanning', module.screen, () => ({ level: 'none', findings: [] })),
  }
})
vi.mock('../../../plugins/chat/safety/loop-guard.ts', async (original) => {
  const module = await original<typeof GuardModule>()
  return {
    ...module,
    createGuard: swap('loop_guard', module.createGuard, () => ({
      before: () => ({ action: 'allow' }),
      after: () => undefined,
    })),
  }
})
vi.mock('../../../plugins/chat/safety/history-repair.ts', async (original) => {
  const module = await original<typeof RepairModule>()
  return { ...module, repair: swap('session_repair', module.repair, (turns: unknown) => ({ turns, report: {} })) }
})

/** Methods of classes, which are one and the same wherever the class is used. */
function stubMethods(): void {
  const { writeHead } = GuardedResponse.prototype
  GuardedResponse.prototype.writeHead = function writeBareHead(this: GuardedResponse, ...args: Json[]) {
    return Reflect.apply(
      broken.system === 'security_headers' ? ServerResponse.prototype.writeHead : writeHead,
      this,
      args,
    )
  }
  const { checkAddress } = Policy.prototype
  Policy.prototype.checkAddress = function checkNothing(host, address) {
    if (broken.system !== 'ssrf_protection') Reflect.apply(checkAddress, this, [host, address])
  }
  const wipe = SecretBytes.prototype[Symbol.dispose]
  SecretBytes.prototype[Symbol.dispose] = function wipeNothing() {
    if (broken.system !== 'secret_zeroization') Reflect.apply(wipe, this, [])
  }
}

let host: TestHost
beforeAll(async () => {
  stubMethods()
  host = await startHost({ config: { plugins: { security: { on_demand_ms: 0, probe_timeout_ms: 60_000 } } } })
})
afterAll(async () => {
  await host[Symbol.asyncDispose]()
})

async function status(): Promise<{
  readonly systems: Readonly<Record<string, string>>
  readonly allActive: boolean
  readonly total: number
  readonly failures: readonly string[]
}> {
  const { body } = await host.json('GET', '/api/security')
  return {
    systems: body.security_systems,
    allActive: body.all_active,
    total: body.total_systems,
    failures: body.probes[broken.system]?.failures ?? [],
  }
}

const health = async (): Promise<string> => (await host.json('GET', '/api/health')).body.status

describe('the sixteen systems', () => {
  it('are all active when nothing is stubbed out', async () => {
    broken.system = ''
    expect(await status()).toMatchObject({
      systems: Object.fromEntries(systemNames.map((name) => [name, 'active'])),
      allActive: true,
      total: 16,
    })
  })

  it.each(systemNames)('without %s exactly its row is red', async (system) => {
    broken.system = system
    const { systems, allActive, total, failures } = await status()
    expect(systems).toEqual(
      Object.fromEntries(systemNames.map((name) => [name, name === system ? 'failed' : 'active'])),
    )
    expect([allActive, total]).toEqual([false, 16])
    expect(failures.length).toBeGreaterThan(0)
    // The daemon is unwell when it is the audit trail, and only then.
    expect(await health()).toBe(system === 'merkle_audit_trail' ? 'degraded' : 'ok')
    const said = host.app.daemon.warnings().filter((warning) => warning.startsWith('audit trail: this does not hold: '))
    expect(said).toHaveLength(system === 'merkle_audit_trail' ? 1 : 0)
  })

  it('are all active again afterwards, and every failure and recovery is in the audit log', async () => {
    broken.system = ''
    expect((await status()).allActive).toBe(true)
    expect(await health()).toBe('ok')
    for (const event of ['security_system_failed', 'security_system_recovered'])
      expect((await host.json('GET', `/api/audit/recent?event_type=${event}`)).body.total).toBe(16)
    const metrics = await (await host.fetch('/api/metrics')).text()
    for (const system of systemNames)
      expect(metrics).toContain(`svc_security_probe_failures_total{system="${system}"} 1`)
  })
})
