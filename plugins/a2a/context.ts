import * as v from 'valibot'
import { Daemon } from 'svc/internal'
import type { PluginContext } from 'svc/sdk'
import { Agents } from '../agents/contract.ts'
import { Approvals } from '../approvals/contract.ts'
import { Audit } from '../audit/contract.ts'
import { Chat, Turns } from '../chat/contract.ts'
import { Queue } from '../queue/contract.ts'
import { Screening } from '../screening/contract.ts'
import { Sessions } from '../sessions/contract.ts'
import { WebhookSender } from '../webhooks/contract.ts'
import { Settings } from './config.ts'

export const required = {
  agents: Agents,
  audit: Audit,
  chat: Chat,
  queue: Queue,
  screening: Screening,
  daemon: Daemon,
  sessions: Sessions,
  turns: Turns,
}
export const optional = { approvals: Approvals, webhooks: WebhookSender }
export const sections = { a2a: v.optional(Settings, {}) }

/** What both halves of the plugin get. */
export type A2aContext = PluginContext<{ readonly a2a: Settings }, typeof required, typeof optional>
