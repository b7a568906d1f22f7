import { defineService } from 'svc/sdk'
import type { Actor } from 'svc/internal'
import type { Dispose, Statement } from 'svc/sdk'

/** What happened, in snake_case past tense (Interface 2.11). */
export type AuditEvent =
  | 'agent_spawned'
  | 'agent_killed'
  | 'agent_updated'
  | 'agent_message'
  | 'tool_invoked'
  | 'capability_check'
  | 'memory_access'
  | 'file_access'
  | 'network_access'
  | 'shell_exec'
  | 'auth_attempt'
  | 'auth_revoked'
  | 'config_change'
  | 'plugin_changed'
  | 'session_changed'
  | 'daemon_started'
  | 'daemon_stopped'
  | 'turn_interrupted'
  | 'budget_changed'
  | 'budget_warning'
  | 'wire_connect'
  | 'permission_denied'
  | 'budget_exceeded'
  | 'retention_trimmed'
  | 'audit_anchor_reset'
  | 'backup_created'
  | 'backup_deleted'
  | 'backup_restored'
  | 'security_system_failed'
  | 'security_system_recovered'
  | 'taint_violation'
  | 'injection_suspected'
  | 'event_published'
  | 'webhook_changed'
  | 'pairing_changed'
  | 'channel_changed'
  | 'webhook_received'
  | 'a2a_task_received'
  | 'a2a_push_changed'
  | 'schedule_changed'
  | 'hand_changed'
  | 'trigger_changed'
  | 'integration_changed'
  | 'mcp_server_changed'
  | 'workflow_changed'
  | 'goal_changed'
  | 'task_posted'
  | 'task_claimed'
  | 'task_completed'
  | 'task_changed'
  | 'result_undelivered'
  | 'cron_fired'
  | 'trigger_fired'
  | 'workflow_completed'
  | 'workflow_failed'
  | 'a2a_agent_changed'
  | 'cluster_changed'
  | 'skill_changed'
  | 'data_migrated'

export interface AuditRecord {
  readonly event: AuditEvent
  /** The agent it concerns; empty when none. */
  readonly agentId?: string
  /** One line for a person. Control characters are escaped, secrets masked, 4 KiB at most. */
  readonly details: string
  /**
   * Values before and after: the entry names the keys that differ, with both. What is named like a secret is masked.
   */
  readonly change?: AuditChange
  /** Replaces the caller of the current request. */
  readonly actor?: Actor | undefined
}
export interface AuditChange {
  readonly before: Readonly<Record<string, unknown>>
  readonly after: Readonly<Record<string, unknown>>
}
/** An entry as stored in the chain. */
export interface AuditEntry {
  readonly id: number
  /** ISO 8601 UTC. */
  readonly timestamp: string
  readonly event: string
  readonly agentId: string
  readonly details: string
  /** Who did it, in words; empty when nobody asked for it. It ends in ` in <id>` for work of a turn. */
  readonly actor: string
}
export interface Audit {
  /** A statement for the batch of the change it describes, so that both are on disk or neither is. */
  entry(record: AuditRecord): Statement
  /** For events without a change of their own, such as a refused key. Settles when durable. */
  write(record: AuditRecord): Promise<void>
  /** Entries that concern an agent, newest first; `before` is the number of an entry. */
  entries(
    agentId: string,
    options: { readonly limit: number; readonly before?: number },
  ): Promise<readonly AuditEntry[]>
}
export const Audit = defineService<Audit>()('audit')

/** The trail for readers that follow it: an entry is on disk together with the change it records. */
export interface AuditFeed {
  /** Entries after a number, oldest first. */
  following(after: number, limit: number): Promise<readonly AuditEntry[]>
  /** The number of the newest entry; 0 when there is none. */
  newest(): Promise<number>
  /** Calls back after entries of this process are on disk, until it is disposed. Another process may add some too. */
  onAppended(listener: () => void): Dispose
}
export const AuditFeed = defineService<AuditFeed>()('audit-feed')
