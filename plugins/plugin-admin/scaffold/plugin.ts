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
  apiVersion: '^1.2.0',
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
    'index.test.ts': testFile(name, tool),
  }
}

function testFile(name: string, tool: string): string {
  return `import assert from 'node:assert/strict'
import { test } from 'node:test'
import { startPlugin } from 'svc/testing'

const plugin = new URL('./', import.meta.url)

test('greets over the API and through its tool', async () => {
  await using daemon = await startPlugin({ plugin, config: { plugins: { '${name}': { greeting: 'Welcome' } } } })
  const answer = await daemon.request('GET', '/api/${name}/Ada')
  assert.deepEqual([answer.status, answer.body], [200, { text: 'Welcome, Ada!' }])
  const result = await daemon.callTool('${tool}', { who: 'Ada' })
  assert.deepEqual([result.failed, result.text], [false, 'Welcome, Ada!'])
})

test('leaves nothing behind when it is unloaded', async () => {
  await using daemon = await startPlugin({ plugin })
  await daemon.unload()
  assert.deepEqual(daemon.registered().routes, [])
})
`
}

/** Text from a caller as a literal of TypeScript. */
export function quote(text: string): string {
  return JSON.stringify(text).replaceAll('\u2028', '\\u2028').replaceAll('\u2029', '\\u2029')
}
