import { describe, expect, it } from 'vitest'
import { startHost } from '../support/host.ts'

/**
 * What answers without a key when one is set (Interface 5.2): the health check and whether a
 * load balancer is to send requests, the pages with their parts, which carry no
 * data, and where a login at an MCP server comes back to.
 */
const open = [
  'GET /',
  'GET /api/channels/:name/webhook',
  'GET /api/channels/:name/webhook/:account',
  'GET /api/health',
  'GET /api/mcp/oauth/callback',
  'GET /api/mcp/oauth/client-metadata.json',
  'GET /api/pairing',
  'GET /api/ready',
  'GET /assets/**:file',
  'GET /canvas/:id/:pass',
  'GET /docs',
  'GET /docs/guide',
  'GET /docs/guide/**:page',
  'GET /favicon.svg',
  'GET /frames/:plugin/:page/**:file',
  'GET /frames/kit/:file',
  'GET /pages/:plugin/:page/**:file',
  'GET /pages/kit/:file',
  'POST /api/channels/:name/webhook',
  'POST /api/channels/:name/webhook/:account',
]

/** POST routes that ignore an Idempotency-Key, and why a repeated request leaves what the first one left. */
const repeatable: Readonly<Record<string, readonly string[]>> = {
  'the end is the same state': [
    '/api/agents/bulk/start',
    '/api/agents/bulk/stop',
    '/api/agents/:id/start',
    '/api/agents/:id/stop',
    '/api/agents/:id/sessions/:session_id/switch',
    '/api/agents/:id/session/compact',
    '/api/sessions/:id/compact',
    '/api/sessions/cleanup',
    '/api/cluster/members/:id/drain',
    '/api/cluster/members/:id/undrain',
    '/api/providers/:name/key',
    '/api/files/bucket/key',
    '/api/models/aliases',
    '/api/models/custom',
    '/api/catalog/update',
    '/api/channels/reload',
    '/api/channels/:name/configure',
    '/api/mcp/servers/:name/restart',
    '/api/mcp/servers/:name/logout',
    '/api/integrations/reload',
    '/api/integrations/:id/reconnect',
    '/api/agents/:id/memory/import',
    '/api/memory/agents/:id/import',
    '/api/memory/agents/:id/consolidate',
    '/api/memory/bulk-delete',
    '/api/memory/cleanup',
    '/api/memory/decay',
    '/api/memory/agents/:id/relations',
    '/api/plugins/:name/reload',
    '/api/plugins/:name/install-deps',
    '/api/config/set',
    '/api/config/reload',
    '/api/skills/reload',
    '/api/auth/logout',
    '/api/shutdown',
    '/api/restart',
    '/api/restore',
    '/api/hands/:hand_id/install-deps',
    '/api/workflows/runs/:run_id/pause',
    '/api/workflows/runs/:run_id/resume',
  ],
  'the second one is refused, or finds it done': [
    '/api/turns/:id/drop',
    '/api/queue/:lane/jobs/:id/retry',
    '/a2a/tasks/:id/cancel',
    '/api/a2a/tasks/:id/cancel',
    '/api/a2a/agents/:id/approve',
    '/api/approvals/:id/approve',
    '/api/approvals/:id/reject',
    '/api/channels/:name/outbox/:id/retry',
    '/api/channels/:name/inbox/:id/retry',
    '/api/mcp/servers',
    '/api/integrations/add',
    '/api/pairing/complete',
    '/api/plugins/install',
    '/api/plugins/uninstall',
    '/api/plugins/scaffold',
    '/api/extensions/install',
    '/api/extensions/uninstall',
    '/api/skills/install',
    '/api/skills/uninstall',
    '/api/skills/create',
    '/api/hands/install',
    '/api/migrate',
    '/api/hands/instances/:id/pause',
    '/api/hands/instances/:id/resume',
    '/api/clawhub/install',
    '/api/auth/callback',
    '/api/auth/session',
    '/api/tasks/:id/retry',
    '/api/tasks/:id/cancel',
    '/api/webhooks/:id/deliveries/:delivery_id/retry',
    '/api/webhooks/events/:id/deliveries/:delivery_id/retry',
    '/api/workflows/runs/:run_id/cancel',
  ],
  'it leaves nothing': [
    '/api/agents/validate',
    '/api/hands/:hand_id/check-deps',
    '/api/config/provider/test',
    '/api/providers/:name/test',
    '/api/a2a/discover',
    '/api/mcp/servers/test',
    '/api/peers/:id/ping',
    '/api/auth/introspect',
    '/api/workflows/:id/dry-run',
    '/api/migrate/scan',
  ],
  'a later login takes the place of the one before': [
    '/api/providers/:name/oauth/start',
    '/api/channels/:name/qr/start',
    '/api/mcp/servers/:name/login',
  ],
  'the protocol has ids of its own': [
    '/',
    '/a2a',
    '/a2a/agents/:name',
    '/api/channels/:name/webhook',
    '/api/channels/:name/webhook/:account',
    '/mcp',
    '/mcp/:server',
  ],
}

/** Routes whose answers are stored for their Idempotency-Keys, and why nothing comes back that was deleted. */
const storedAnswers: Readonly<Record<string, readonly string[]>> = {
  'a stream is never stored': ['GET /api/agents/:id/stream', 'POST /api/agents/:id/message/stream'],
  'ids, names and states': [
    'POST /api/agents',
    'POST /api/agents/:id/clone',
    'POST /api/agents/:id/session/reset',
    'POST /api/agents/:id/sessions',
    'POST /api/agents/:id/upload',
    'POST /api/agents/bulk',
    'POST /api/approvals',
    'POST /api/bindings',
    'POST /api/comms/task',
    'POST /api/hands/:hand_id/activate',
    'POST /api/hooks/wake',
    'POST /api/triggers',
    'POST /api/turns/:id/retry',
    'POST /api/workflows',
    'POST /api/workflows/runs/:run_id/rerun',
  ],
  'the caller was told what an agent, another program or a run answered, which stays for the 24 hours of the key': [
    'POST /a2a/tasks',
    'POST /a2a/tasks/send',
    'POST /api/a2a/send',
    'POST /api/agents/:id/commands',
    'POST /api/agents/:id/message',
    'POST /api/comms/send',
    'POST /api/hooks/agent',
    'POST /api/media/images',
    'POST /api/media/speech',
    'POST /api/media/transcriptions',
    'POST /api/peers/:id/messages',
    'POST /api/schedules/:id/run',
    'POST /api/workflows/:id/run',
    'POST /v1/chat/completions',
  ],
}

describe('the live routes', () => {
  it('that make something are done once with an Idempotency-Key, refuse one, or may be repeated', async () => {
    await using host = await startHost({ listen: false })
    const posts = host.app.routes().filter(({ method }) => method === 'POST')
    const unkeyed = posts.filter(({ idempotent }) => idempotent === undefined).map(({ path }) => path)
    expect(unkeyed.toSorted(), 'say `idempotent`, or why it may be repeated').toEqual(
      Object.values(repeatable).flat().toSorted(),
    )
  })

  it('store no answer with content that can be deleted', async () => {
    await using host = await startHost({ listen: false })
    const stored = host.app
      .routes()
      .filter(({ idempotent, keepsAnswer }) => idempotent === true && keepsAnswer !== false)
    expect(
      stored.map(({ method, path }) => `${method} ${path}`).toSorted(),
      'say `keepsAnswer: false`, or what is in the answer',
    ).toEqual(Object.values(storedAnswers).flat().toSorted())
  })

  it('are public only where the interface says so', async () => {
    await using host = await startHost({ listen: false })
    const routes = host.app.routes()
    expect(routes.length).toBeGreaterThan(50)
    expect(
      routes
        .filter(({ auth }) => auth !== 'bearer')
        .map(({ method, path }) => `${method} ${path}`)
        .toSorted(),
    ).toEqual(open)
  })

  it('each cost something and say what they do', async () => {
    await using host = await startHost({ listen: false })
    expect(
      host.app
        .routes()
        .filter(({ cost, summary }) => !(cost >= 1) || summary.trim() === '')
        .map(({ method, path }) => `${method} ${path}`),
    ).toEqual([])
  })

  it('refuse a caller without the key before anything else', async () => {
    await using host = await startHost({
      config: { api_key: 'a-key-for-this-test', rate_limit: { tokens_per_minute: 1_000_000 } },
    })
    const answers = await Promise.all(
      host.app
        .routes()
        .filter(({ auth }) => auth === 'bearer')
        .map(async ({ method, path }) => {
          const response = await fetch(host.url + path.replaceAll(/\*{0,2}:\w+/g, 'x'), {
            method,
            headers: { 'content-type': 'application/json' },
            ...(method === 'GET' ? {} : { body: '{' }),
          })
          await response.arrayBuffer()
          return `${method} ${path}: ${response.status}`
        }),
    )
    expect(answers.filter((line) => !line.endsWith(': 401'))).toEqual([])
  })
})
