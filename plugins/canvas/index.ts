import * as v from 'valibot'
import { definePlugin, defineTool, fields, idempotencyKey, settable } from 'svc/sdk'
import { AgentKilling } from '../agents/contract.ts'
import { SessionCleared } from '../sessions/contract.ts'
import { CanvasPresented } from './contract.ts'
import { migrations } from './migrations.ts'
import { canvasRoutes } from './routes.ts'
import { CanvasStore } from './store.ts'

export default definePlugin({
  name: 'canvas',
  version: '1.0.0',
  config: settable(
    'says how much of what agents show is kept',
    v.object({
      max_html_bytes: fields.integer('Largest HTML of a canvas, in bytes.', 524_288, 1, 4_194_304),
      kept_per_session: fields.integer('Canvases of a session that are kept, the newest ones.', 100, 1, 10_000),
    }),
  ),
  hooks: [CanvasPresented],
  migrations,
  setup({ config, db, hooks, routes, tools }) {
    const store = new CanvasStore(db)
    const deps = { store, hooks, maxHtmlBytes: config.max_html_bytes, keptPerSession: config.kept_per_session }
    tools.add(
      defineTool({
        name: 'canvas_present',
        risk: 'write',
        description:
          'Show HTML to the user beside your answer, such as a table, a diagram in SVG or a report with its styles. ' +
          'Nothing in it runs or is loaded: no scripts, forms, links or addresses; pictures as data: URLs only.',
        input: v.object({
          html: v.pipe(v.string(), v.minLength(1), v.description('The content of the body, with <style> if need be')),
          title: v.optional(v.pipe(v.string(), v.maxLength(200)), 'Canvas'),
        }),
        assess: () => ({ intent: 'show a canvas' }),
        run: async (input, call) => (await import('./present.ts')).presentCanvas(deps, input, call),
        async recover(_, call) {
          const id = idempotencyKey(call)
          if (!(await store.find(id))) return { outcome: 'repeat' }
          return { outcome: 'done', text: (await import('./present.ts')).shownText(id) }
        },
      }),
    )
    routes.add(...canvasRoutes(store))
    hooks.on(SessionCleared, ({ sessionId }) => store.removeOfSession(sessionId))
    hooks.on(AgentKilling, ({ agent, statements }) => ({
      agent,
      statements: [...statements, store.removeOfAgent(agent.id)],
    }))
    return {}
  },
})
