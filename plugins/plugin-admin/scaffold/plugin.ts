import type { Template } from './template.ts'

/** A plugin with a route, a tool, a key of the configuration and a test. */
export function pluginFiles({ name, description }: Template): Readonly<Record<string, string>> {
  const tool = name.replaceAll('-', '_')
  return {
    'index.ts': `import * as v from 'valibot'
import { definePlugin, defineRoute, defineTool, settable } from 'svc/sdk'

const Greeting = v.object({ text: v.string() })

export default definePlugin({
  name: '${name}',
  version: '0.1.0',
  apiVersion: '^1.1.0',
  // The section [plugins.${name}] of the configuration.
  config: v.object({
    greeting: v.optional(settable('only how people are greeted', v.pipe(v.string(), v.minLength(1))), 'Hello'),
  }),
  // Whatever is not declared here is refused when it is used.
  uses: { routes: ['/api/${name}/*'], tools: ['${tool}'] },
  setup({ config, routes, tools }) {
    const greet = (who: string): string => \`\${config.greeting}, \${who}!\`
    routes.add(
      defineRoute({
        method: 'GET',
        path: '/api/${name}/:who',
        summary: ${quote(description || 'Greet someone')},
        auth: 'bearer',
        effect: 'read',
        cost: 1,
        params: v.object({ who: v.pipe(v.string(), v.maxLength(100)) }),
        returns: Greeting,
        handle: ({ params }) => ({ text: greet(params.who) }),
      }),
    )
    tools.add(
      defineTool({
        name: '${tool}',
        description: ${quote(description || 'Greets someone by name.')},
        risk: 'read',
        input: v.object({ who: v.pipe(v.string(), v.description('Who is greeted.')) }),
        run: async ({ who }) => greet(who),
      }),
    )
    return {}
  },
})
`,
    'index.test.ts': `import { startPlugin } from 'svc/testing'
import { expect, it } from 'vitest'

const plugin = new URL('./', import.meta.url)

it('greets over the API and through its tool', async () => {
  await using test = await startPlugin({ plugin, config: { plugins: { '${name}': { greeting: 'Welcome' } } } })
  expect(await test.request('GET', '/api/${name}/Ada')).toMatchObject({ status: 200, body: { text: 'Welcome, Ada!' } })
  expect(await test.callTool('${tool}', { who: 'Ada' })).toMatchObject({ text: 'Welcome, Ada!', failed: false })
})

it('leaves nothing behind when it is unloaded', async () => {
  await using test = await startPlugin({ plugin })
  await test.unload()
  expect(test.registered().routes).toEqual([])
})
`,
  }
}

/** Text from a caller as a literal of TypeScript. */
export function quote(text: string): string {
  return JSON.stringify(text).replaceAll('\u2028', '\\u2028').replaceAll('\u2029', '\\u2029')
}
