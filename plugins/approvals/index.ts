import { commandLine, definePlugin } from 'svc/sdk'
import { Agents } from '../agents/contract.ts'
import { Audit } from '../audit/contract.ts'
import { wallClock } from 'svc/internal'
import { ApprovalsConfig } from './config.ts'
import { ApprovalRequested, ApprovalResolved, Approvals } from './contract.ts'
import type { ApprovalGate } from './gate.ts'
import { listen } from './hooks.ts'
import { migrations } from './migrations.ts'
import { asks } from './policy.ts'
import { approvalRoutes } from './routes.ts'
import { ApprovalService } from './service.ts'
import { ApprovalStore } from './store.ts'

const PRUNE_MS = 6 * 3_600_000

export default definePlugin({
  name: 'approvals',
  version: '1.0.0',
  config: ApprovalsConfig,
  hooks: [ApprovalRequested, ApprovalResolved],
  requires: { agents: Agents, audit: Audit },
  provides: { approvals: Approvals },
  migrations,
  async setup({ config, credentials, db, hooks, jobs, log, metrics, own, routes, run, services, leaving, tools }) {
    const store = new ApprovalStore(db)
    const failed = (error: unknown): void => {
      log.error('an approval could not be processed', error)
    }
    const passed = metrics.counter('svc_approvals_granted_calls_total', 'Calls that a standing approval let pass.')
    const announce = (emit: () => Promise<void>): void => {
      run(emit).catch(failed)
    }
    const service = new ApprovalService({
      store,
      audit: services.audit,
      clock: wallClock,
      failed,
      granted: () => passed.add(),
      asks: (agent, tool) => asks(agent, tool, config),
      holds: (principal) => credentials.holds(principal),
      limits: {
        timeoutSecs: config.timeout_secs,
        pendingPerAgent: config.pending_per_agent,
        payloadBytes: config.payload_bytes,
        keepDays: config.keep_days,
        sessionScope: config.session_scope,
        grantsPerSession: config.grants_per_session,
      },
      requested(approval) {
        log.info(
          `${approval.agentName} asks for approval (${approval.risk} risk): ${approval.summary}; answer it on the ` +
            `chat page or with ${commandLine(`approval approve ${approval.id.slice(0, 8)}`)}`,
        )
        announce(() => hooks.emit(ApprovalRequested, { approval }))
      },
      resolved: (approval) => announce(() => hooks.emit(ApprovalResolved, { approval })),
    })
    own('timers of approvals', () => service.close())
    await service.open()
    // The first call of a tool loads it.
    let loading: Promise<ApprovalGate> | undefined
    const gate = (): Promise<ApprovalGate> =>
      (loading ??= import('./gate.ts').then(
        (loaded) => new loaded.ApprovalGate({ config, service, store, clock: wallClock, tools, leaving }),
      ))
    listen(hooks, service, gate)
    jobs.every('prune', PRUNE_MS, () => service.prune())
    metrics.observed('svc_approvals_pending', 'Approvals that wait for an answer.', () => [{ value: service.waiting }])
    metrics.observed('svc_approvals_standing', 'Standing approvals in force.', () => [{ value: service.standing }])
    routes.add(...approvalRoutes(service, services.agents, tools, config))
    return { approvals: service }
  },
})
