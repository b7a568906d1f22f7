import { commandLine, definePlugin } from 'svc/sdk'
import type { Metrics } from 'svc/sdk'
import { Agents } from '../agents/contract.ts'
import { Audit } from '../audit/contract.ts'
import { Broadcast, Daemon, DatabaseSnapshots, rowProofs, wallClock } from 'svc/internal'
import { ApprovalsConfig } from './config.ts'
import { ResultDelivery } from '../result-delivery/contract.ts'
import { ApprovalEscalated, ApprovalRequested, ApprovalResolved, Approvals } from './contract.ts'
import type { Approval } from './contract.ts'
import type { Escalator, EscalatorDeps } from './escalation/escalator.ts'
import { listen } from './hooks.ts'
import { migrations } from './migrations.ts'
import { asks } from './policy.ts'
import { approvalRoutes } from './routes.ts'
import { ApprovalService } from './service.ts'
import type { ApprovalServiceDeps } from './service.ts'
import { ApprovalStore } from './store.ts'

const PRUNE_MS = 6 * 3_600_000

export default definePlugin({
  name: 'approvals',
  version: '1.0.0',
  config: ApprovalsConfig,
  hooks: [ApprovalRequested, ApprovalEscalated, ApprovalResolved],
  requires: { agents: Agents, audit: Audit, broadcast: Broadcast, daemon: Daemon, snapshots: DatabaseSnapshots },
  optional: { delivery: ResultDelivery },
  provides: { approvals: Approvals },
  migrations,
  pages: [
    {
      path: 'approvals',
      title: 'Approvals',
      group: 'Agents',
      file: 'pages/approvals.html',
      assets: ['approvals.js', 'form-fields.js', 'approvals.css'],
    },
  ],
  async setup({ config, db, hooks, jobs, log, metrics, optional, own, routes, run, services, leaving, tools, vault }) {
    const derive = () => services.snapshots.deriveKey('approvals')
    const codes = rowProofs({ derive, vault })
    const revoked = lazily(
      async () => new (await import('./revoked/store.ts')).RevokedGrants(services.snapshots.homeDir),
    )
    const proofs = lazily(async () => new (await import('./proof.ts')).ApprovalProofs(codes, log, await revoked()))
    const store = new ApprovalStore(db, log, proofs, (id) => services.broadcast.tell('approvals.decided', { id }))
    const failed = (error: unknown): void => log.error('an approval could not be processed', error)
    const announce = (emit: () => Promise<void>): void => {
      run(emit).catch(failed)
    }
    const escalator = await openEscalator(config, {
      store,
      audit: services.audit,
      clock: wallClock,
      failed,
      delivery: () => optional('delivery'),
      escalated: escalationTold(metrics, (told) => announce(() => hooks.emit(ApprovalEscalated, told))),
    })
    own('escalation', () => escalator?.close())
    const service = new ApprovalService({
      store,
      audit: services.audit,
      clock: wallClock,
      failed,
      granted: countGranted(metrics),
      asks: (agent, tool) => asks(agent, tool, config),
      isLasting: (tool) => tools.find(tool)?.effect === 'lasting',
      remember: (principal) => services.daemon.remember(principal),
      revoked: async (id, at) => (await revoked()).put(id, { revoked_at: at }),
      tellRevoked: (id) => services.broadcast.tell('approvals.revoked', { id }),
      holds: (remembered) => services.daemon.isHeld(remembered),
      limits: limitsOf(config),
      requested(approval) {
        log.info(describeRequest(approval))
        escalator?.start(approval)
        announce(() => hooks.emit(ApprovalRequested, { approval }))
      },
      resumed: (approval) => escalator?.start(approval),
      resolved(approval) {
        escalator?.stop(approval.id)
        announce(() => hooks.emit(ApprovalResolved, { approval }))
      },
    })
    own('timers of approvals', () => service.close())
    if (services.broadcast.isShared)
      await (
        await import('./decisions.ts')
      ).hear(services.broadcast, service, { own, failed, revoked, db, log, proofs })
    await service.open()
    const deps = { config, service, store, clock: wallClock, tools, leaving }
    const gate = lazily(async () => new (await import('./gate.ts')).ApprovalGate(deps))
    listen(hooks, service, gate)
    jobs.every('prune', PRUNE_MS, () => service.prune())
    observe(metrics, service)
    routes.add(...approvalRoutes(service, services.agents, tools, config))
    return { approvals: service }
  },
})

/** Most daemons escalate nothing: the code is loaded where the configuration has a rule. */
async function openEscalator(
  { escalation: rules }: Pick<ApprovalsConfig, 'escalation'>,
  deps: Omit<EscalatorDeps, 'rules'>,
): Promise<Escalator | undefined> {
  if (rules.length === 0) return undefined
  const loaded = await import('./escalation/escalator.ts')
  return new loaded.Escalator({ ...deps, rules })
}

function limitsOf(config: ApprovalsConfig): ApprovalServiceDeps['limits'] {
  return {
    timeoutSecs: config.timeout_secs,
    agentTimeoutSecs: new Map(Object.entries(config.agent_timeout_secs)),
    pendingPerAgent: config.pending_per_agent,
    payloadBytes: config.payload_bytes,
    keepDays: config.keep_days,
    sessionScope: config.session_scope,
    grantsPerSession: config.grants_per_session,
    twoPeople: config.two_people,
  }
}

/** Made by the first call. */
function lazily<T>(make: () => Promise<T>): () => Promise<T> {
  let loading: Promise<T> | undefined
  return () => (loading ??= make())
}

function escalationTold(
  metrics: Metrics,
  emit: (told: { readonly approval: Approval; readonly channel: string; readonly to: string }) => void,
): EscalatorDeps['escalated'] {
  const counter = metrics.counter('svc_approvals_escalated_total', 'Times another chat was asked, by channel.')
  return (approval, { channel, to }) => {
    counter.add(1, { channel })
    emit({ approval, channel, to })
  }
}

function describeRequest({ id, agentName, risk, summary }: Approval): string {
  return (
    `${agentName} asks for approval (${risk} risk): ${summary}; answer it on the ` +
    `chat page or with ${commandLine(`approval approve ${id.slice(0, 8)}`)}`
  )
}

function observe(metrics: Metrics, service: ApprovalService): void {
  metrics.observed('svc_approvals_pending', 'Approvals that wait for an answer.', () => [{ value: service.waiting }])
  metrics.observed('svc_approvals_standing', 'Standing approvals in force.', () => [{ value: service.standing }])
}

function countGranted(metrics: Metrics): () => void {
  const passed = metrics.counter('svc_approvals_granted_calls_total', 'Calls that a standing approval let pass.')
  return () => passed.add()
}
