import type { Reason } from './limit.ts'

const pause: Reason = 'how often the daemon works for itself'
const kept: Reason = 'how long something is kept'
const when: Reason = 'when something is done, not whether'
const part: Reason = 'a price or a part'

/** Numbers of the configuration that nobody is refused for, and why. */
export const notLimits: Readonly<Record<string, Reason>> = {
  'http.sse_keep_alive_ms': pause,
  'plugins.drain_ms': when,
  'plugins.max_crashes': when,
  'plugins.crash_window_secs': when,
  'plugins.worker_memory_mb': part,
  'plugins.worker_hang_ms': when,
  'plugins.worker_hook_ms': when,
  'plugins.worker_restart_ms': pause,
  'plugins.watch_ms': when,
  'plugins.revert_failures': when,
  'plugins.revert_percent': when,
  'plugins.retire_ms': when,
  'plugins.retired_copies': kept,
  'plugins.channels.close_timeout_ms': when,
  'plugins.channels.reconnect_min_ms': pause,
  'plugins.channels.reconnect_max_ms': pause,
  'plugins.channels.stable_ms': when,
  'plugins.channels.lease_secs': when,
  'plugins.channels.dedupe_hours': kept,
  'plugins.channels.give_up_hours': kept,
  'plugins.channels.send_retry_min_ms': pause,
  'plugins.channels.send_retry_max_ms': pause,
  'plugins.channels.retention_days': kept,
  'plugins.channels.pairing_code_secs': kept,
  'plugins.audit.retention_days': kept,
  'plugins.audit.trim_interval_secs': pause,
  'plugins.audit.checkpoint_secs': pause,
  'plugins.journal.retention_days': kept,
  'plugins.journal.traces_per_agent': kept,
  'plugins.journal.cleanup_interval_hours': pause,
  'plugins.approvals.approved_for_secs': kept,
  'plugins.approvals.keep_days': kept,
  'plugins.backups.snapshot_interval_secs': pause,
  'plugins.backups.snapshots_kept': kept,
  'budget.alert_threshold': part,
  'plugins.budgets.reservation_secs': kept,
  'plugins.sessions.context_messages': when,
  'plugins.sessions.retention_days': kept,
  'plugins.sessions.max_sessions_per_agent': kept,
  'plugins.sessions.cleanup_interval_hours': pause,
  'plugins.providers.back_off_min_ms': when,
  'plugins.providers.back_off_max_ms': when,
  'plugins.providers.breaker_window_ms': when,
  'plugins.providers.breaker_pause_ms': when,
  'plugins.providers.breaker_trial_ms': when,
  'plugins.providers.detect_ms': when,
  'plugins.providers.detect_again_ms': pause,
  'plugins.providers.key_rest_ms': when,
  'plugins.providers.rate_limit_rest_ms': when,
  'providers.*.context_window': part,
  'providers.*.prices.*.input': part,
  'providers.*.prices.*.output': part,
  'providers.*.prices.*.cached_input': part,
  'providers.*.prices.*.cache_write': part,
  'plugins.chat.history_messages': when,
  'plugins.chat.compaction.threshold_messages': when,
  'plugins.chat.compaction.keep_recent': when,
  'plugins.chat.compaction.max_summary_tokens': when,
  'plugins.chat.compaction.token_threshold_ratio': part,
  'plugins.chat.compaction.max_chunk_chars': when,
  'plugins.chat.waiting_after_ms': when,
  'plugins.chat.text_flush_ms': when,
  'plugins.chat.text_flush_chars': when,
  'plugins.chat.agents_updated_ms': pause,
  'plugins.chat.agents_updated_first_ms': pause,
  'plugins.openai-api.conversation_hours': kept,
  'plugins.security.probe_interval_ms': pause,
  'plugins.security.on_demand_ms': pause,
  'plugins.security.probe_timeout_ms': when,
  'plugins.security.stale_ms': kept,
  'plugins.security.first_probe_ms': pause,
  'plugins.journal.lease_secs': when,
  'plugins.providers.reload_wait_ms': when,
  'plugins.schedules.grace_secs': when,
  'plugins.comms.max_events': kept,
  'plugins.schedules.retention_days': kept,
  'plugins.schedules.run_wait_secs': when,
  'plugins.triggers.cooldown_secs': when,
  'plugins.triggers.max_history': kept,
  'plugins.triggers.retention_days': kept,
  'plugins.triggers.poll_interval_ms': pause,
  'plugins.workflows.kept_revisions': kept,
  'plugins.workflows.max_kept_runs': kept,
  'plugins.workflows.total_timeout_secs': when,
  'plugins.queue.retry_min_ms': pause,
  'plugins.queue.retry_max_ms': pause,
  'plugins.queue.lease_secs': when,
  'plugins.queue.poll_interval_ms': pause,
  'plugins.queue.retention_hours': kept,
  'plugins.events.retention_hours': kept,
  'plugins.tasks.claim_ttl_secs': when,
  'plugins.tasks.retention_days': kept,
  'plugins.tasks.sweep_interval_secs': pause,
  'plugins.tasks.wake_retry_secs': pause,
  'plugins.tasks.wake_retry_max_secs': pause,
  'plugins.result-delivery.give_up_hours': when,
  'plugins.result-delivery.retry_max_secs': pause,
  'plugins.webhooks.back_off_min_ms': when,
  'plugins.webhooks.back_off_max_ms': when,
  'plugins.webhooks.retention_days': kept,
  'plugins.webhooks.poll_ms': pause,
  'plugins.webhooks.heartbeat_secs': pause,
  'pairing.token_expiry_secs': kept,
  'pairing.last_seen_secs': pause,
  'external_auth.session_ttl_secs': kept,
  'external_auth.timeout_ms': when,
}

/**
 * Limits that are reached by a test of their own, because that takes a clock that is moved, another connector or a
 * second daemon: the file and the name of the test.
 */
export const elsewhere: Readonly<Record<string, readonly [file: string, name: string]>> = {
  'http.socket_buffer_bytes': ['test/core/http/sockets.test.ts', 'a client that does not read is closed with 1013'],
  'http.stream_status_ms': [
    'test/api/stream-status.test.ts',
    'of a slow model begins when the time for its status is over',
  ],
  'outbound.program_connections': ['test/core/net/proxy-connections.test.ts', 'closes what is beyond its connections'],
  'outbound.total_program_connections': [
    'test/core/net/proxy-connections.test.ts',
    'refuses a program what the programs of all agents have in use',
  ],
  'plugins.channels.open_timeout_secs': [
    'test/plugins/channels/supervisor.test.ts',
    'that does not open in time is given up, and ended when it opens later',
  ],
  'plugins.channels.webhook_max_bytes': [
    'test/plugins/channels/channels.test.ts',
    'is refused with a fixed text: unknown, not signed, too large',
  ],
  'plugins.channels.webhook_rate_per_minute': [
    'test/plugins/channels/channels.test.ts',
    'is limited by account, and wrong signatures by address',
  ],
  'plugins.channels.max_accounts': [
    'test/plugins/channels/channels.test.ts',
    'no more accounts and bindings than the configuration permits',
  ],
  'plugins.channels.max_bindings': [
    'test/plugins/channels/channels.test.ts',
    'no more accounts and bindings than the configuration permits',
  ],
  'plugins.channels.message_chars': ['test/plugins/channels/messages.test.ts', 'a text that is too long is not read'],
  'plugins.channels.pairing_guesses_per_hour': ['test/plugins/channels/messages.test.ts', 'codes cannot be guessed'],
  'plugins.channels.max_attachments': [
    'test/plugins/channels/limits.test.ts',
    'files beyond max_attachments and attachment_max_bytes are named, and not read',
  ],
  'plugins.channels.attachment_max_bytes': [
    'test/plugins/channels/limits.test.ts',
    'files beyond max_attachments and attachment_max_bytes are named, and not read',
  ],
  max_cron_jobs: ['test/plugins/schedules/routes.test.ts', 'stay within the limits of an agent and of all'],
  'plugins.schedules.max_jobs_per_agent': [
    'test/plugins/schedules/routes.test.ts',
    'stay within the limits of an agent and of all',
  ],
  'plugins.schedules.max_failures': [
    'test/plugins/schedules/scheduler.test.ts',
    'disables a job after failures in a row, and tells; enabling starts it afresh',
  ],
  'plugins.schedules.max_skips_recorded': [
    'test/plugins/schedules/scheduler.test.ts',
    'records a long pause with a bound',
  ],
  'plugins.schedules.max_result_chars': [
    'test/plugins/schedules/routes.test.ts',
    'keeps max_result_chars of a result, and its receiver gets all of it',
  ],
  'plugins.comms.max_streams': [
    'test/plugins/comms/comms.test.ts',
    'refuses more readers than plugins.comms.max_streams',
  ],
  'plugins.goals.max_goals': ['test/plugins/goals/goals.test.ts', 'refuse more than plugins.goals.max_goals'],
  'plugins.goals.max_depth': [
    'test/plugins/goals/goals.test.ts',
    'have a hierarchy without cycles, which is deleted as a whole',
  ],
  'plugins.triggers.max_triggers': [
    'test/plugins/triggers/routes.test.ts',
    'is refused when its agent, or the daemon, has as many as it may',
  ],
  'plugins.triggers.max_triggers_per_agent': [
    'test/plugins/triggers/routes.test.ts',
    'is refused when its agent, or the daemon, has as many as it may',
  ],
  'plugins.triggers.max_per_event': [
    'test/plugins/triggers/firing.test.ts',
    'fires the oldest triggers of an event where there are many: max_per_event',
  ],
  'plugins.triggers.max_depth': [
    'test/plugins/triggers/firing.test.ts',
    'counts triggers that set each other off, and stops at max_depth',
  ],
  'plugins.triggers.max_event_chars': [
    'test/plugins/triggers/firing.test.ts',
    'tells what was published, with where it comes from, cut at max_event_chars',
  ],
  'plugins.triggers.max_result_chars': [
    'test/plugins/triggers/firing.test.ts',
    'asks the agent once, with the event as a sentence, keeps max_result_chars and sends the whole result',
  ],
  'plugins.workflows.max_workflows': ['test/plugins/workflows/definitions.test.ts', 'a workflow too many'],
  'plugins.workflows.max_steps': ['test/plugins/workflows/definitions.test.ts', 'too many steps'],
  'plugins.workflows.max_prompt_chars': ['test/plugins/workflows/definitions.test.ts', 'a long prompt'],
  'plugins.workflows.max_iterations': ['test/plugins/workflows/definitions.test.ts', 'too many iterations'],
  'plugins.workflows.max_retries': ['test/plugins/workflows/definitions.test.ts', 'too many retries: max_retries'],
  'plugins.workflows.max_step_timeout_secs': [
    'test/plugins/workflows/definitions.test.ts',
    'too much time: max_step_timeout_secs',
  ],
  'plugins.workflows.max_file_bytes': ['test/plugins/workflows/import.test.ts', 'plugins.workflows.max_file_bytes'],
  'plugins.workflows.max_rendered_chars': [
    'test/plugins/workflows/templates.test.ts',
    'is never longer than the limit, however often it names a long value',
  ],
  'plugins.workflows.max_active_runs': ['test/plugins/workflows/runs.test.ts', 'max_active_runs at a time'],
  'plugins.workflows.max_depth': [
    'test/plugins/workflows/runs.test.ts',
    'another workflow runs inside, at most so deep',
  ],
  'plugins.workflows.max_output_chars': [
    'test/plugins/workflows/runs.test.ts',
    'a value with placeholders is not expanded again, and a long output is cut',
  ],
  'plugins.worker_message_bytes': [
    'test/core/process/message-pipe.test.ts',
    'ends with %s, and reads nothing after it',
  ],
  'plugins.channels.format_chars': [
    'test/plugins/channels/text.test.ts',
    'grows with its length up to format_chars, and not beyond: %j',
  ],
  'plugins.channels.max_rejections': [
    'test/plugins/channels/sender-faults.test.ts',
    'a message for which the platform always fails is a dead letter while it takes those of other chats',
  ],
  'plugins.channels.max_failed_chats': [
    'test/plugins/channels/sender-faults.test.ts',
    'a platform that fails in several chats gets one message at a time, and everything in order when it is back',
  ],
  'plugins.channels.max_attempts': [
    'test/plugins/channels/limits.test.ts',
    'what cannot be sent is a dead letter after max_attempts, and is sent again when asked for, once',
  ],
  'plugins.channels.max_conversations': [
    'test/plugins/channels/limits.test.ts',
    'max_conversations are answered side by side, and commands beside them',
  ],
  'plugins.channels.max_concurrent_sends': [
    'test/plugins/channels/limits.test.ts',
    'max_concurrent_sends are on their way side by side',
  ],
  'plugins.channels.notices_per_minute': [
    'test/plugins/channels/limits.test.ts',
    'notices_per_minute tell strangers that they are not known',
  ],
  'outbound.plugin_connections': [
    'test/core/net/connections.test.ts',
    'gives up after its time or on abort, also while the name is looked up, and beyond its number',
  ],
  'plugins.approvals.grants_per_session': [
    'test/plugins/approvals/gate.test.ts',
    'holds for nobody once it is switched off, and of a session only so many do',
  ],
  'plugins.chat.reasoning_chars': ['test/api/reasoning.test.ts', 'is kept up to a limit'],
  'plugins.chat.session_followers': [
    'test/api/session-stream.test.ts',
    'only so many follow, and a session that is not there has no stream',
  ],
  'outbound.connect_timeout_ms': [
    'test/core/net/outbound.test.ts',
    'silence before and after the headers and a body nobody reads end by themselves',
  ],
  'outbound.total_timeout_ms': [
    'test/core/net/outbound.test.ts',
    'drops that trickle in do not outlive the limit for the whole',
  ],
  'outbound.max_bytes': ['test/core/net/outbound.test.ts', 'decompresses and counts the size after that'],
  'tools.content_chars': ['test/core/tools/registry.test.ts', 'comes without parts that are too large, and says so'],
  'tools.timeout_secs': ['test/core/tools/registry.test.ts', 'is stopped when its time is up, and its signal with it'],
  'plugins.approvals.escalation[].after_secs': [
    'test/plugins/approvals/escalation.test.ts',
    'is asked in the chat that the file names, once, also across a restart, and is answered there by an operator',
  ],
  'plugins.approvals.timeout_secs': [
    'test/plugins/approvals/approvals.test.ts',
    'while a turn waits, after its time: the turn is told no',
  ],
  'plugins.plugin-admin.max_archive_bytes': [
    'test/plugins/plugin-admin/install.test.ts',
    'an archive that is too large, code that never answers, and more dependencies than permitted',
  ],
  'plugins.plugin-admin.inspect_timeout_ms': [
    'test/plugins/plugin-admin/install.test.ts',
    'an archive that is too large, code that never answers, and more dependencies than permitted',
  ],
  'plugins.plugin-admin.max_dependencies': [
    'test/plugins/plugin-admin/install.test.ts',
    'an archive that is too large, code that never answers, and more dependencies than permitted',
  ],
  'plugins.plugin-admin.max_total_bytes': [
    'test/plugins/plugin-admin/install.test.ts',
    'a plugin whose dependencies are small each and too large together',
  ],
  'plugins.plugin-admin.max_metadata_bytes': [
    'test/plugins/plugin-admin/install.test.ts',
    'a plugin about whose dependencies the registry says too much, each a little',
  ],
  'plugins.plugin-admin.max_inspection_bytes': [
    'test/plugins/plugin-admin/install.test.ts',
    'code that answers with %s',
  ],
  'plugins.plugin-admin.max_problem_chars': ['test/plugins/plugin-admin/install.test.ts', 'code that answers with %s'],
  'plugins.plugin-admin.max_unpacked_bytes': ['test/plugins/plugin-admin/install.test.ts', 'an archive with %s'],
  'plugins.plugin-admin.max_files': ['test/plugins/plugin-admin/install.test.ts', 'an archive with %s'],
  'plugins.backups.max_files': [
    'test/plugins/backups/hostile.test.ts',
    'a bomb is refused by what it says and by what it holds',
  ],
  'plugins.backups.max_bytes': [
    'test/plugins/backups/hostile.test.ts',
    'a bomb is refused by what it says and by what it holds',
  ],
  'plugins.shell.process_life_secs': [
    'test/plugins/shell/shell.test.ts',
    'ends when nobody asks for it any more, and with the plugin',
  ],
  'plugins.queue.concurrency.*': [
    'test/plugins/queue/queue.test.ts',
    'runs as many side by side as the lane may, and one of a group',
  ],
  'plugins.queue.default_concurrency': [
    'test/plugins/queue/queue.test.ts',
    'runs each job once, however often it is added, in the order in which they are due',
  ],
  'plugins.queue.max_depth': [
    'test/plugins/queue/queue.test.ts',
    'says when it is full, and forgets what ended long ago',
  ],
  'plugins.queue.max_depth_per_agent': [
    'test/plugins/queue/queue.test.ts',
    'says when it is full, and forgets what ended long ago',
  ],
  'plugins.queue.max_failures': [
    'test/plugins/queue/queue.test.ts',
    'tries what failed again after a pause, as often as it may, and tells its plugin of the end',
  ],
  'plugins.queue.max_losses': ['test/plugins/queue/queue.test.ts', 'gives up a job that ends its daemon each time'],
  'plugins.tasks.max_open_per_agent': [
    'test/plugins/tasks/service.test.ts',
    'are refused beyond their limits, also at the same time, and what is refused leaves nothing',
  ],
  'plugins.tasks.max_claimed_per_agent': [
    'test/plugins/tasks/service.test.ts',
    'are refused beyond their limits, also at the same time, and what is refused leaves nothing',
  ],
  'plugins.tasks.max_text_chars': [
    'test/plugins/tasks/service.test.ts',
    'are refused beyond their limits, also at the same time, and what is refused leaves nothing',
  ],
  'plugins.tasks.max_depth': ['test/plugins/tasks/wake.test.ts', 'cannot have agents keep each other busy for ever'],
  'plugins.tasks.max_attempts': [
    'test/plugins/tasks/tasks.test.ts',
    'ends with its time: another agent gets the task, and after some attempts it has failed',
  ],
  'plugins.web.max_results': ['test/plugins/web/web.test.ts', 'brings results of the provider that is configured'],
  'external_auth.max_sessions': [
    'test/plugins/sso/sign-in.test.ts',
    'one person has so many sign-ins, the oldest ends for a new one; and all together have so many',
  ],
  'external_auth.max_sessions_per_user': [
    'test/plugins/sso/sign-in.test.ts',
    'one person has so many sign-ins, the oldest ends for a new one; and all together have so many',
  ],
  'pairing.max_devices': ['test/plugins/pairing/pairing.test.ts', 'leaves room for no more devices than configured'],
  'pairing.max_pending': ['test/plugins/pairing/pairing.test.ts', 'is one of five at most'],
  'pairing.max_attempts': [
    'test/plugins/pairing/store.test.ts',
    'a code that expired, was tried too often or is not there makes none',
  ],
  'pairing.push_timeout_ms': [
    'test/plugins/pairing/push.test.ts',
    'to a service that never answers ends after push_timeout_ms, as the answer and the audit log say',
  ],
  'plugins.webhooks.max_attempts': [
    'test/plugins/webhooks/webhooks.test.ts',
    'what a slow or redirecting receiver did not take is a dead letter that can be sent again',
  ],
  'plugins.webhooks.timeout_ms': [
    'test/plugins/webhooks/webhooks.test.ts',
    'what a slow or redirecting receiver did not take is a dead letter that can be sent again',
  ],
  'plugins.webhooks.max_waiting': [
    'test/plugins/webhooks/webhooks.test.ts',
    'beyond what may wait for one target deliveries are dead letters at once',
  ],
  'plugins.webhooks.max_concurrent': [
    'test/plugins/webhooks/webhooks.test.ts',
    'a receiver that fails gets the same bytes under the same id again, and nothing overtakes them',
  ],
}
