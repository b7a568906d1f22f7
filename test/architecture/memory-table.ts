/**
 * What a daemon keeps in memory beyond a call, and why nothing that another daemon on the database does makes it wrong.
 * In `of`, a line is a file and the names in it. A file alone, or a folder, stands for all of its places; it covers no
 * file that reads rows, which names its places one by one.
 */
export type MemoryRow = { readonly of: string } & (
  | {
      /** Nothing of it is in a row that others change, because: */
      readonly private: string
    }
  | {
      /** The rows decide each time; how: */
      readonly read: string
    }
  | {
      /** Each daemon has its own. The first cell of the row of `docs/scale.md` that says what follows. */
      readonly alone: string
    }
  | {
      /** The topic by which others tell of changes. */
      readonly told: string
      /** The file with the test that a change elsewhere is seen, after a lost message too. */
      readonly test: string
    }
)

export const memoryTable: readonly MemoryRow[] = [
  {
    private: 'what was asked of this process; the file is in its own data folder',
    of: 'plugins/system/request-recorder.ts: #recent',
  },
  {
    private: 'core knows no rows of plugins: connections, processes, files, registrations and limits of this process',
    of: `
      core/app.ts
      core/app/kernel.ts: liveness #config #settings
      core/auth/bearer.ts
      core/auth/late.ts
      core/auth/row-proof.ts: #key
      core/auth/short-code.ts: #key
      core/config/
      core/config/load.ts: sources
      core/hooks/
      core/host/
      core/host/isolation/bridge.ts: #registered
      core/http/
      core/http/server.ts: #listener #document #upgrades #loading
      core/jobs/
      core/limit/
      core/log/
      core/metrics/
      core/net/
      core/process/
      core/schema/
      core/scope/
      core/storage/
      core/storage/open-postgres.ts: broadcast
      core/storage/own-tables.ts: #found
      core/storage/postgres-broadcast.ts: #listeners #client #outbox #inbox
      core/storage/read-only.ts: prepared
      core/storage/sqlite-connection.ts: #connector #db
      core/storage/storage.ts: mounts
      core/storage/vault-file.ts: key making
      core/tools/
      core/tools/secret-scanner.ts: #known #stored #former #windows`,
  },
  {
    private: 'plugins that are installed in this home',
    of: 'core/host/accepted-permissions.ts: #installed #storage #key',
  },
  {
    private: 'given by the plugins pairing and sso, which are told of changes',
    of: `
      core/auth/credentials.ts
      core/auth/presented.ts`,
  },
  {
    private: 'one connection to a platform, which one daemon has at a time, or one answer of a provider',
    of: 'adapters/',
  },
  {
    private: 'code and services that are loaded on first use',
    of: `
      plugins/a2a/server/index.ts: loaded opened scheme
      plugins/agents/index.ts: proofs
      plugins/agents/shipped.ts: #key
      plugins/agents/service.ts: #loadedChanges
      plugins/approvals/index.ts: loading
      plugins/approvals/proof.ts: #named
      plugins/approvals/service.ts: #standing
      plugins/backups/index.ts
      plugins/browser/index.ts: opened
      plugins/catalog/index.ts: reading createdRegistry createdEntries
      plugins/channels/host-loader.ts
      plugins/chat/composition.ts: shared known loaded loading keySalt
      plugins/chat/turn/loop.ts: toolStep
      plugins/chat/turn/runner.ts
      plugins/chat/turn/service.ts: #failedTurns
      plugins/chat/turn/tool-executor.ts
      plugins/comms/index.ts: opened
      plugins/files/index.ts: loading opened
      plugins/goals/index.ts: opened
      plugins/hands/index.ts: opened
      plugins/hands/runtime.ts: #installing
      plugins/kv/index.ts: opened
      plugins/providers/inference.ts: calls opened
      plugins/integrations/index.ts: opened
      plugins/mcp-server/index.ts
      plugins/migrate/index.ts: opened
      plugins/mcp/index.ts: opened opening listening
      plugins/memory/composition.ts: opened
      plugins/memory/lazy.ts: last opened
      plugins/pairing/index.ts: made
      plugins/peers/index.ts
      plugins/plugin-admin/index.ts: opened shared
      plugins/schedules/index.ts: opened
      plugins/shell/index.ts
      plugins/skills/index.ts: opened opening
      plugins/skills/open-admin.ts: opened
      plugins/sso/sign-in-service.ts: made
      plugins/tasks/index.ts: opened
      plugins/triggers/index.ts: loaded opened
      plugins/usage/spending.ts: opened
      plugins/webhooks/delivery-pipeline.ts: #webhooks #workers
      plugins/webhooks/inbound/index.ts: delivery handler store
      plugins/workflows/index.ts: opened files
      plugins/workflows/runs/index.ts: opened`,
  },
  {
    private: 'files of this installation, and sections of its configuration',
    of: `
      plugins/skills/
      plugins/skills/index.ts: disabled
      plugins/templates/
      plugins/hands/catalog.ts: #read
      plugins/channels/accounts/service.ts: #file
      plugins/channels/index.ts: section
      plugins/mcp/servers/running-servers.ts: #file
      core/files/home-record.ts
      plugins/integrations/catalog/
      plugins/webchat/assets.ts
      plugins/webchat/index.ts: page
      plugins/workflows/files/workflow-files.ts`,
  },
  {
    private: 'answers of hubs that each daemon asks by itself, for as long as they are kept',
    of: 'plugins/skills/hub/',
  },
  {
    private: 'what plugins of this process have registered',
    of: `
      plugins/agents/variables.ts
      plugins/channels/connections/registry.ts
      plugins/chat/entry/command-registry.ts
      plugins/mcp-server/exports.ts
      plugins/providers/registry.ts
      plugins/workflows/steps/registry.ts`,
  },
  {
    private: 'follows from its key alone',
    of: `
      plugins/channels/policies/mention-patterns.ts
      plugins/chat/context/request.ts
      plugins/chat/context/window.ts
      plugins/chat/safety/sound-history.ts
      plugins/clock/time.ts
      plugins/mcp/connection/open.ts
      plugins/memory/words/meanings.ts: alternatives
      plugins/providers/connection.ts
      plugins/schedules/timing/`,
  },
  {
    private: 'the work of one call, request, turn, run or file, and gone with it',
    of: `
      plugins/skills/run/program.ts: #stdout #stderr
      plugins/a2a/client/card/
      plugins/a2a/client/wire.ts
      plugins/a2a/server/stream.ts
      plugins/audit/tree/merkle.ts
      plugins/audit/walk.ts: #culprit #badCheckpoint
      plugins/audit/writers/walk.ts
      plugins/backups/archive.ts
      plugins/catalog/collect.ts
      plugins/channels/text/
      plugins/chat/entry/conversation.ts
      plugins/chat/entry/encode-sse.ts
      plugins/chat/probes/
      plugins/chat/safety/loop-guard.ts
      plugins/chat/turn/event-log.ts
      plugins/chat/turn/live-turn.ts
      plugins/chat/turn/loop.ts
      plugins/chat/turn/progress.ts
      plugins/chat/turn/record.ts
      plugins/chat/turn/tool-progress.ts
      plugins/browser/admission.ts
      plugins/browser/driver/
      plugins/browser/processes/
      plugins/docs/markdown.ts
      plugins/files/file-changes.ts
      plugins/files/folders.ts
      plugins/files/mount/watch.ts
      plugins/files/s3/open.ts: problem
      plugins/hands/instances.ts: #plans
      plugins/hands/members.ts: #plans
      plugins/mcp-server/http/message.ts
      plugins/mcp-server/server.ts
      plugins/mcp/connection/lines.ts
      plugins/mcp/connection/output-schema.ts
      plugins/mcp/requests/sampling.ts: releases
      plugins/peers/frames.ts
      plugins/plugin-admin/install/registry.ts
      plugins/plugin-admin/install/staging.ts
      plugins/screening/words.ts
      plugins/shell/command.ts
      plugins/shell/words.ts
      plugins/triggers/dispatch-plan.ts
      plugins/media/calls.ts: releases
      plugins/providers/inference.ts: events
      plugins/vision/analyze.ts: releases
      plugins/wasm/bytes.ts
      plugins/web/
      plugins/workflows/runs/run.ts`,
  },
  {
    private: 'connections, streams, processes and calls of this process',
    of: `
      plugins/a2a/server/runtime.ts: #streams
      plugins/backups/service.ts
      plugins/migrate/import/run.ts: imported unchanged agents
      plugins/migrate/model.ts
      plugins/migrate/service.ts: #expected #current
      plugins/migrate/source/
      plugins/migrate/source/database.ts: #open
      plugins/browser/browsers.ts
      plugins/browser/session.ts
      plugins/channels/connections/supervisor.ts
      plugins/chat/context/compactor.ts
      plugins/chat/entry/session-stream.ts
      plugins/chat/entry/socket-feeds.ts
      plugins/chat/turn/failed-turns.ts: #settling
      plugins/mcp-server/backend/
      plugins/mcp/connection/
      plugins/mcp/requests/limits.ts
      plugins/mcp/servers/redactor.ts
      plugins/mcp/servers/server-registry.ts: #trying #newSecrets #operators
      plugins/mcp/servers/store.ts: #warned
      plugins/peers/half-open.ts
      plugins/peers/links/
      plugins/peers/network/
      plugins/peers/runtime.ts: network shared identity problem #inbound
      plugins/providers/ollama.ts
      plugins/queue/lane.ts
      plugins/queue/pg-boss/driver.ts: #lanes
      plugins/queue/service.ts
      plugins/queue/signals.ts
      plugins/shell/
      plugins/wasm/
      plugins/webhooks/dispatcher.ts: #busy`,
  },
  {
    private: 'what this daemon has seen or counted itself',
    of: `
      plugins/audit/chain.ts
      plugins/budgets/notifier.ts: #known #pending
      plugins/catalog/registry.ts: #running #failure
      plugins/channels/messaging.ts: #unanswered
      plugins/channels/policies/sliding-window.ts
      plugins/chat/safety/tool-call-rate.ts
      plugins/integrations/health.ts
      plugins/journal/retention.ts: #written
      plugins/mcp/features/pins.ts: #asked
      plugins/memory/upkeep/upkeep.ts: #counts #automatic #capping
      plugins/memory/upkeep/use-recorder.ts: #ids
      plugins/memory/prompt/store.ts: #open
      plugins/memory/vectors/embedding.ts: #queued #outdated
      plugins/peers/replays.ts
      plugins/providers/breaker.ts
      plugins/providers/default-model.ts
      plugins/providers/key-rotation.ts
      plugins/plugin-admin/sharing/sharing.ts: #tried
      plugins/security/enforcements.ts
      plugins/security/runner.ts
      plugins/sso/protocol.ts`,
  },
  {
    private: 'belongs to the daemon that owns the session, the chat or the account; rows say who that is',
    of: `
      plugins/channels/inbox/
      plugins/channels/outbox/
      plugins/channels/outbox/outbox.ts: #senders
      plugins/channels/policies/recent-ids.ts
      plugins/chat/owners/
      plugins/chat/owners/open.ts: #watched
      plugins/chat/owners/session-owners.ts: #held
      plugins/chat/turn/service.ts: #held
      plugins/chat/turn/turn-queue.ts`,
  },
  {
    read: 'each row of the database has a version, which is compared with that of the copy',
    of: 'plugins/memory/vectors/search.ts: #kept',
  },
  {
    read: 'counts of what is common are made again when many were added, and after minutes: they only weigh words',
    of: 'plugins/memory/words/counts.ts: #kept',
  },
  {
    read: 'what is newer is read with each search, numbers are given once and keep their marks, and rows decide in the end',
    of: 'plugins/memory/words/members.ts: #bits #kept',
  },
  {
    read: 'the batch that keeps what a program changed fails unless its rows are still what was copied',
    of: 'plugins/files/stored/working-copy.ts: #originals',
  },
  {
    read: 'waits for what rows say, and reads them again every few seconds or less',
    of: `
      plugins/a2a/client/waiters.ts
      plugins/comms/events.ts: #streams
      plugins/schedules/running/manual-runs.ts: #waiting
      plugins/webhooks/inbound/answers/delivery.ts: #followed
      plugins/workflows/runs/changes.ts`,
  },
  {
    read: 'each use on a shared database; only what was parsed of the same text is kept',
    of: `
      plugins/agents/family.ts: #parents
      plugins/agents/registry.ts: #byId #byName #parsed #all`,
  },
  {
    read: 'with each use the rows say by a number or a digest whether it is still true',
    of: `
      plugins/audit/tree/checkpoints.ts: #frontier
      plugins/channels/accounts/service.ts: #moved
      plugins/backups/folder.ts
      plugins/sessions/recent-messages.ts
      plugins/sessions/store.ts: #recent
      plugins/triggers/dispatcher.ts: #known`,
  },
  {
    read: 'the whole chain, when somebody asks',
    of: 'plugins/audit/service.ts: #verifying #listeners',
  },
  {
    read: 'each third of a lease',
    of: `
      plugins/cluster/members.ts
      plugins/cluster/membership.ts: #known #seen #state #lacks
      plugins/journal/turn-owners.ts: #dead`,
  },
  {
    alone: 'sessions of MCP clients at `/mcp`',
    of: `
      plugins/mcp-server/http/
      plugins/mcp-server/http/event-store.ts: #events
      plugins/mcp-server/http/transport.ts: #sizes #meters #running #unanswered #deliver
      plugins/mcp-server/runtime.ts`,
  },
  {
    alone: 'sign-ins of channels and providers with a code',
    of: `
      plugins/channels/connections/sign-ins.ts
      plugins/providers/sign-in.ts`,
  },
  {
    alone: 'agents that wait for each other in a circle',
    of: 'plugins/delegation/',
  },
  {
    told: 'approvals.decided',
    test: 'test/plugins/cluster/kept-rows.test.ts',
    of: `
      plugins/approvals/escalation/escalator.ts: #timers
      plugins/approvals/service.ts: #timers #waiters`,
  },
  {
    told: 'budgets.limits',
    test: 'test/plugins/cluster/changes.test.ts',
    of: `
      plugins/budgets/lineage.ts
      plugins/budgets/service.ts: #state #reading`,
  },
  {
    told: 'catalog.models',
    test: 'test/plugins/cluster/changes.test.ts',
    of: 'plugins/catalog/models.ts: #contents #aliases',
  },
  {
    told: 'channels.accounts',
    test: 'test/plugins/cluster/changes.test.ts',
    of: 'plugins/channels/connections/account-connections.ts',
  },
  {
    told: 'channels.bindings',
    test: 'test/plugins/cluster/changes.test.ts',
    of: 'plugins/channels/routing/bindings.ts: #all',
  },
  {
    told: 'channels.conversations',
    test: 'test/plugins/cluster/kept-rows.test.ts',
    of: 'plugins/channels/routing/conversations.ts: #sessions #chosen #thinking',
  },
  {
    told: 'channels.people',
    test: 'test/plugins/cluster/changes.test.ts',
    of: 'plugins/channels/policies/pairing.ts: #people',
  },
  {
    told: 'channels.threads',
    test: 'test/plugins/cluster/kept-rows.test.ts',
    of: 'plugins/channels/routing/thread-owners.ts: #known',
  },
  {
    told: 'mcp.servers',
    test: 'test/plugins/mcp/several-daemons.test.ts',
    of: `
      plugins/mcp/servers/running-servers.ts: #servers #revisions
      plugins/mcp/servers/server.ts
      plugins/mcp/tools/`,
  },
  {
    told: 'pairing.devices',
    test: 'test/plugins/cluster/changes.test.ts',
    of: 'plugins/pairing/devices.ts: #byDigest #accepted #refused #leaving',
  },
  {
    told: 'providers.connections',
    test: 'test/plugins/cluster/changes.test.ts',
    of: `
      plugins/providers/addresses.ts: #urls
      plugins/providers/keys.ts: #stored`,
  },
  {
    told: 'sessions.summary-changed',
    test: 'test/plugins/cluster/kept-rows.test.ts',
    of: 'plugins/sessions/summary/store.ts: #known',
  },
  {
    told: 'settings.changes',
    test: 'test/plugins/settings/shared.test.ts',
    of: 'plugins/settings/sharing.ts: #refused',
  },
  {
    told: 'skills.installed',
    test: 'test/plugins/skills/shared.test.ts',
    // Those of hands are told by `hands.installed`, as test/plugins/hands/shared.test.ts shows.
    of: 'core/files/shared-folders.ts: #refused',
  },
  {
    told: 'sso.sessions',
    test: 'test/plugins/cluster/kept-rows.test.ts',
    of: 'plugins/sso/sessions.ts: #byDigest #accepted',
  },
]
