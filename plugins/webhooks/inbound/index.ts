import { createLimiter, readVariable } from 'svc/internal'
import type { PluginContext, ServiceToken } from 'svc/sdk'
import type { Agents } from '../../agents/contract.ts'
import type { Audit } from '../../audit/contract.ts'
import type { ChannelMessages } from '../../channels/contract.ts'
import type { Chat, Turns } from '../../chat/contract.ts'
import type { Inference } from '../../providers/contract.ts'
import type { Triggers } from '../schema.ts'
import type { AnswerDelivery } from './answers/delivery.ts'
import { InboundGate } from './gate.ts'
import { inboundRoutes } from './routes.ts'
import type { InboundStore } from './store.ts'
import type { WakeHandler } from './wake-handler.ts'

type InboundContext = PluginContext<
  { readonly webhook_triggers: Triggers },
  {
    agents: ServiceToken<Agents>
    audit: ServiceToken<Audit>
    chat: ServiceToken<Chat>
    turns: ServiceToken<Turns>
  },
  { inference: ServiceToken<Inference>; channels: ServiceToken<ChannelMessages> }
>

/** Adds `/api/hooks`, by which other programs wake and ask agents. */
export function addInbound(ctx: InboundContext, background: (work: () => Promise<void>) => void) {
  const { config, db, hooks, log, routes, services } = ctx
  const { audit, agents, chat, turns } = services
  const { webhook_triggers: section } = config
  const token = section.token?.trim() || readVariable(section.token_env)?.trim() || undefined
  const triggers = { ...section, token }
  let store: Promise<InboundStore> | undefined
  const inbound = (): Promise<InboundStore> =>
    (store ??= import('./store.ts').then((module) => new module.InboundStore(db, log)))
  const limiter = createLimiter({
    tokens: triggers.rate_limit_per_minute,
    windowMs: 60_000,
    maxKeys: 10_000,
    now: () => performance.now(),
  })
  const gate = new InboundGate({
    triggers,
    store: inbound,
    limiter,
    failed: (failure) => ctx.credentials.failed(failure),
  })
  let handler: Promise<WakeHandler> | undefined
  const wakes = (): Promise<WakeHandler> =>
    (handler ??= import('./wake-handler.ts').then(
      async (module) => new module.WakeHandler({ store: await inbound(), audit, agents, chat, turns, log }),
    ))
  let delivery: Promise<AnswerDelivery> | undefined
  const answers = (): Promise<AnswerDelivery> => (delivery ??= loadAnswers(ctx))
  routes.add(
    ...inboundRoutes({
      gate,
      wakes,
      answers,
      chat,
      turns,
      audit,
      hooks,
      models: () => ctx.optional('inference'),
      maxBytes: triggers.max_payload_bytes,
      background,
    }),
  )
  if (gate.problem !== undefined) log.warn(gate.problem)

  return { answers, inbound, wakes, triggers }
}

async function loadAnswers(ctx: InboundContext): Promise<AnswerDelivery> {
  const [{ AnswerDelivery }, { AnswerStore }] = await Promise.all([
    import('./answers/delivery.ts'),
    import('./answers/store.ts'),
  ])
  const { config, db, leaving, log, services } = ctx
  return new AnswerDelivery({
    store: new AnswerStore(db, log),
    turns: services.turns,
    log,
    leaving,
    permitted: config.webhook_triggers.deliver_to,
    channels: () => ctx.optional('channels'),
  })
}
