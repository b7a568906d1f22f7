import { expect } from 'vitest'
import type { Answer } from '../support/host.ts'
import { startHttps } from '../support/https.ts'
import { refused } from './limit.ts'
import type { LimitGroup, LimitStage } from './limit.ts'

const get = async ({ tool, outside }: LimitStage, agent: string, path: string) =>
  tool(agent, 'web_fetch', { url: `${outside.url}${path}` })
export const web: LimitGroup = {
  name: 'what is fetched',
  config: (outside) => ({
    outbound: { allow: ['127.0.0.1'], max_redirects: 2 },
    plugins: {
      web: {
        max_response_bytes: 4096,
        max_chars: 500,
        search_provider: 'searxng',
        searxng_url: `${outside.url}/results/5`,
        max_results: 2,
      },
      catalog: { registry_url: `${outside.url}/models/50`, max_registry_models: 10 },
      webhooks: { max_webhooks: 1 },
    },
  }),
  limits: {
    async 'outbound.max_redirects'(stage) {
      const agent = await stage.agent()
      expect((await get(stage, agent, '/hops/2')).text).toContain('there')
      expect(await get(stage, agent, '/hops/3')).toMatchObject({
        failed: true,
        text: expect.stringMatching(/redirected more than 2 times/),
      })
    },
    async 'plugins.web.max_response_bytes'(stage) {
      const agent = await stage.agent()
      expect((await get(stage, agent, '/text/4000')).failed).toBe(false)
      expect(await get(stage, agent, '/text/5000')).toMatchObject({
        failed: true,
        text: expect.stringMatching(/more than 4096 bytes/),
      })
    },
    async 'plugins.web.max_chars'(stage) {
      const agent = await stage.agent()
      expect((await get(stage, agent, '/text/400')).text).toMatch(/x{400}/)
      expect((await get(stage, agent, '/text/1000')).text).toMatch(/x{500}(?!x)/)
    },
    async 'plugins.catalog.max_registry_models'({ post }) {
      const { status, body } = await post('/api/catalog/update', {})
      expect([status, body.error.message]).toEqual([
        expect.any(Number),
        expect.stringMatching(/50 models, more than the limit of 10 \(max_registry_models\)/),
      ])
    },
    async 'plugins.webhooks.max_webhooks'({ post, outside }) {
      const add = (name: string) => post('/api/webhooks', { name, url: `${outside.url}/text/1`, events: ['all'] })
      expect((await add('one')).status).toBe(201)
      refused(await add('two'), {
        status: 409,
        code: 'conflict',
        says: /1 webhooks already.*plugins\.webhooks\.max_webhooks/,
      })
    },
  },
}

export const silence: LimitGroup = {
  name: 'what says nothing',
  config: () => ({ outbound: { allow: ['127.0.0.1'], headers_timeout_ms: 1000, idle_timeout_ms: 1000 } }),
  limits: {
    async 'outbound.headers_timeout_ms'(stage) {
      expect(await get(stage, await stage.agent(), '/silent')).toMatchObject({
        failed: true,
        text: expect.stringMatching(/1000 ms|1 s/),
      })
    },
    async 'outbound.idle_timeout_ms'(stage) {
      expect(await get(stage, await stage.agent(), '/stall')).toMatchObject({
        failed: true,
        text: expect.stringMatching(/1000 ms|1 s/),
      })
    },
  },
}

export const slow: LimitGroup = {
  name: 'what takes long',
  config: (outside) => ({
    outbound: { allow: ['127.0.0.1'], total_timeout_ms: 500, max_bytes: 2048 },
    plugins: { web: { timeout_secs: 1 }, catalog: { registry_url: `${outside.url}/silent`, registry_timeout_ms: 300 } },
  }),
  limits: {
    async 'plugins.web.timeout_secs'(stage) {
      expect(await get(stage, await stage.agent(), '/silent')).toMatchObject({
        failed: true,
        text: expect.stringMatching(/1000 ms|1 s/),
      })
    },
    async 'plugins.catalog.registry_timeout_ms'({ post }) {
      const { status, body } = await post('/api/catalog/update', {})
      expect([status, body.error.message]).toEqual([503, expect.stringMatching(/300 ms/)])
    },
  },
}
export const registry: LimitGroup = {
  name: 'the registry of models',
  config: (outside) => ({
    outbound: { allow: ['127.0.0.1'] },
    plugins: { catalog: { registry_url: `${outside.url}/models/500`, max_registry_bytes: 1000 } },
  }),
  limits: {
    async 'plugins.catalog.max_registry_bytes'({ post }) {
      const { body } = await post('/api/catalog/update', {})
      expect(body.error.message).toMatch(/more than 1000 bytes/)
    },
  },
}

/** Asks about the picture at an address of a server whose path says how large it is, or that it says nothing. */
async function look(stage: LimitStage, path: string): Promise<Answer> {
  await using server = await startHttps(({ url = '' }, response) => {
    const bytes = Number(url.slice(1))
    if (Number.isNaN(bytes)) return
    response.writeHead(200, { 'content-type': 'image/png' })
    response.end(Buffer.concat([dot, Buffer.alloc(bytes - dot.byteLength)]))
  })
  const agent = await stage.agent()
  const answer = await stage.post('/v1/chat/completions', {
    model: agent,
    messages: [{ role: 'user', content: [{ type: 'image_url', image_url: { url: `${server.url}/${path}` } }] }],
  })
  return answer
}
const dot = Buffer.from(
  'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==',
  'base64',
)
export const pictures: LimitGroup = {
  name: 'pictures that are fetched',
  config: () => ({
    outbound: { allow: ['127.0.0.1'] },
    plugins: { 'openai-api': { fetch_images: true, max_image_bytes: 1000, image_timeout_secs: 1 } },
  }),
  limits: {
    async 'plugins.openai-api.max_image_bytes'(stage) {
      expect((await look(stage, '1000')).status).toBe(200)
      const { status, body } = await look(stage, '1001')
      expect([status, body.error]).toEqual([
        400,
        expect.objectContaining({
          code: 'invalid_image_url',
          message: expect.stringMatching(/more than 1000 bytes.*plugins\.openai-api\.max_image_bytes/),
        }),
      ])
    },
    async 'plugins.openai-api.image_timeout_secs'(stage) {
      const { status, body } = await look(stage, 'silent')
      expect([status, body.error]).toEqual([
        400,
        expect.objectContaining({
          code: 'invalid_image_url',
          message: expect.stringMatching(/1000 ms.*plugins\.openai-api\.image_timeout_secs/),
        }),
      ])
    },
  },
}

const run = (stage: LimitStage, agent: string, command: string, more: object = {}) =>
  stage.tool(agent, 'shell_exec', { command, ...more })
export const programs: LimitGroup = {
  name: 'programs',
  config: () => ({
    plugins: {
      shell: {
        timeout_secs: 2,
        no_output_timeout_secs: 1,
        max_output_bytes: 100,
        processes_per_agent: 1,
        process_idle_secs: 1,
        process_life_secs: 3,
      },
    },
  }),
  limits: {
    async 'plugins.shell.no_output_timeout_secs'(stage) {
      expect((await run(stage, await stage.agent(), 'sleep 30')).text).toMatch(/wrote nothing for 1 seconds/)
    },
    async 'plugins.shell.timeout_secs'(stage) {
      expect((await run(stage, await stage.agent(), 'sh -c "while true; do echo x; sleep 0.2; done"')).text).toMatch(
        /took longer than 2 seconds/,
      )
    },
    async 'plugins.shell.max_output_bytes'(stage) {
      const agent = await stage.agent()
      expect((await run(stage, agent, 'seq 1 20')).text).not.toMatch(/not shown/)
      expect((await run(stage, agent, 'seq 1 1000')).text).toMatch(/the first \d+ bytes are not shown/)
    },
    async 'plugins.shell.processes_per_agent'(stage) {
      const agent = await stage.agent()
      expect((await stage.tool(agent, 'process_start', { command: 'sleep 20' })).failed).toBe(false)
      expect(await stage.tool(agent, 'process_start', { command: 'sleep 20' })).toMatchObject({
        failed: true,
        text: expect.stringMatching(/1 .*plugins\.shell\.processes_per_agent/),
      })
    },
    async 'plugins.shell.process_idle_secs'(stage) {
      const agent = await stage.agent()
      await stage.tool(agent, 'process_start', { command: 'sleep 20' })
      // Looking at the list is not asking for one of them.
      let left = 1
      while (left > 0)
        left = JSON.parse((await stage.tool(agent, 'process_list')).text).filter(
          (one: { alive?: boolean; running?: boolean; status?: string }) =>
            one.alive ?? one.running ?? one.status === 'running',
        ).length
      expect(left).toBe(0)
    },
  },
}
