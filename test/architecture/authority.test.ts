import { expect, it } from 'vitest'
import { authorityTable } from '../support/authority-table.ts'
import { startHost } from '../support/host.ts'

/** The route that does what a tool does, of those that make or change something that goes on without its agent. */
const ROUTES: Readonly<Record<string, string>> = {
  a2a_discover: 'POST /api/a2a/discover',
  a2a_send: 'POST /api/a2a/send',
  agent_kill: 'DELETE /api/agents/:id',
  agent_send: 'POST /api/agents/:id/message',
  agent_spawn: 'POST /api/agents',
  cron_cancel: 'DELETE /api/cron/jobs/:id',
  cron_create: 'POST /api/cron/jobs',
  cron_enable: 'PUT /api/cron/jobs/:id/enable',
  hand_activate: 'POST /api/hands/:hand_id/activate',
  hand_deactivate: 'DELETE /api/hands/instances/:id',
  schedule_create: 'POST /api/schedules',
  schedule_delete: 'DELETE /api/schedules/:id',
  schedule_resume: 'PUT /api/schedules/:id/enable',
  task_cancel: 'POST /api/tasks/:id/cancel',
  task_post: 'POST /api/tasks',
  task_retry: 'POST /api/tasks/:id/retry',
  trigger_create: 'POST /api/triggers',
  trigger_delete: 'DELETE /api/triggers/:id',
  trigger_enable: 'PUT /api/triggers/:id',
  workflow_cancel: 'POST /api/workflows/runs/:run_id/cancel',
  workflow_run: 'POST /api/workflows/:id/run',
  workflow_start: 'POST /api/workflows/:id/run',
}
/** What is the agent's own by its manifest, or is done for the turn: it works on nothing by itself. */
const OF_THE_AGENT = [
  // Its files, its memory, what it shows and how far its goals are.
  'apply_patch',
  'create_directory',
  'file_write',
  'canvas_present',
  'goal_create',
  'goal_update',
  'knowledge_add_entity',
  'knowledge_add_relation',
  'kv_delete',
  'kv_set',
  'memory_forget',
  'memory_store',
  // Pages and programs, which end with their session or at their limits.
  'browser_click',
  'browser_run_js',
  'browser_screenshot',
  'browser_type',
  'shell_exec',
  'skill_execute',
  'process_kill',
  'process_start',
  'process_write',
  // Messages, and work that it took.
  'channel_send',
  'event_publish',
  'peer_send',
  'task_claim',
  'task_complete',
]

it('a tool that makes or changes what goes on without its agent has the effect of the route that does the same', async () => {
  await using host = await startHost({ listen: false })
  const { tools: names } = (await host.json<{ tools: string[] }>('GET', '/api/tools')).body
  const tools = await Promise.all(names.map(async (name) => (await host.json('GET', `/api/tools/${name}`)).body))
  const changing = tools.filter(({ risk }) => risk !== 'read')
  const known = [...Object.keys(ROUTES), ...OF_THE_AGENT]
  // A new tool belongs to one of the two.
  expect(changing.map(({ name }) => name).toSorted()).toEqual(known.toSorted())
  const routes = new Map(host.app.routes().map(({ method, path, effect }) => [`${method} ${path}`, effect]))
  const effects = (of: (name: string) => unknown) =>
    changing.map(({ name, effect }) => [name, of(name) ?? effect] as const)
  expect(effects(() => undefined)).toEqual(
    effects((name) => (name in ROUTES ? routes.get(ROUTES[name] ?? '') : 'conversation') ?? 'no such route'),
  )
})

it('docs/authority.md says of every route who may call it', async () => {
  await using host = await startHost({
    listen: false,
    config: {
      api_key: 'a-key-for-this-test',
      pairing: { enabled: true },
      external_auth: {
        enabled: true,
        issuer_url: 'https://accounts.example.org',
        client_id: 'svc',
        client_secret: 'a secret',
        allowed_domains: ['example.org'],
      },
    },
  })
  await expect(authorityTable(host.app.routes(), host.app.sockets())).toMatchFileSnapshot('../../docs/authority.md')
})
