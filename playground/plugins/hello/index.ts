import * as v from 'valibot'
import { definePlugin, defineRoute, defineTool, notify, Refusal, settable } from 'svc/sdk'
import { migrations } from './migrations.ts'
import { GreetingStore } from './store.ts'

/** Hooks of other plugins are known by their id; the type says what is used of the payload. */
const AgentSpawned = notify<{ readonly agent: { readonly name: string } }>('agents:spawned')

const Greeting = v.object({ text: v.string(), greeted: v.number() })

export default definePlugin({
  name: 'hello',
  version: '1.0.0',
  // The section [plugins.hello]. A key is set in the file only, unless its plugin says otherwise.
  config: v.object({
    greeting: v.optional(settable('only how people are greeted', v.pipe(v.string(), v.minLength(1))), 'Hello'),
  }),
  migrations,
  setup({ config, db, hooks, log, routes, tools }) {
    const store = new GreetingStore(db)
    const greet = async (name: string): Promise<{ text: string; greeted: number }> => {
      if (name.toLowerCase() === 'nobody') throw new Refusal('greeting_not_found', 'There is nobody to greet')
      return { text: `${config.greeting}, ${name}!`, greeted: await store.count(name) }
    }

    routes.add(
      defineRoute({
        method: 'GET',
        path: '/api/hello/:name',
        summary: 'Greet someone',
        auth: 'bearer',
        effect: 'read',
        cost: 2,
        params: v.object({ name: v.pipe(v.string(), v.maxLength(100)) }),
        returns: Greeting,
        errors: ['greeting_not_found'],
        handle: ({ params }) => greet(params.name),
      }),
    )
    tools.add(
      defineTool({
        name: 'hello',
        description: 'Greets someone by name and says how often it did.',
        risk: 'write',
        input: v.object({ name: v.pipe(v.string(), v.description('Who is greeted.')) }),
        async run({ name }) {
          const { text, greeted } = await greet(name)
          return `${text} (${greeted})`
        },
      }),
    )
    hooks.on(AgentSpawned, async ({ agent }) => {
      const { text } = await greet(agent.name)
      log.info(text)
    })
    return {}
  },
})
