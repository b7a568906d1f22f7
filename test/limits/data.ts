import { expect } from 'vitest'
import { refused } from './limit.ts'
import type { LimitGroup } from './limit.ts'

const kv = (agent: string, key: string): string => `/api/memory/agents/${agent}/kv/${encodeURIComponent(key)}`
const large = (code: string, says: RegExp) => ({
  status: code === 'payload_too_large' ? 413 : code === 'conflict' ? 409 : 400,
  code,
  says,
})

export const data: LimitGroup = {
  name: 'what is kept',
  config: () => ({
    plugins: {
      kv: {
        max_key_chars: 20,
        max_value_bytes: 200,
        max_value_depth: 3,
        max_keys_per_agent: 3,
        max_import_bytes: 2048,
      },
      memory: { max_key_chars: 20, max_value_chars: 100, max_notes_per_agent: 2 },
      files: { max_file_bytes: 500, max_upload_bytes: 500, max_identity_bytes: 300 },
      agents: { max_manifest_bytes: 2000, max_bulk: 2, max_depth: 1, max_descendants: 2 },
      tasks: { max_open: 2 },
      events: { payload_bytes: 100 },
      catalog: { max_aliases: 1, max_custom_models: 1 },
      approvals: { policy: 'never', pending_per_agent: 2, payload_bytes: 300 },
      backups: { max_backups: 1 },
    },
  }),
  limits: {
    async 'plugins.kv.max_key_chars'({ host, agent }) {
      const id = await agent()
      expect((await host.json('PUT', kv(id, 'k'.repeat(20)), { value: 1 })).status).toBe(200)
      refused(
        await host.json('PUT', kv(id, 'k'.repeat(21)), { value: 1 }),
        large('invalid_request', /key: 21 characters, at most 20.*plugins\.kv\.max_key_chars/),
      )
    },
    async 'plugins.kv.max_value_bytes'({ host, agent }) {
      const id = await agent()
      expect((await host.json('PUT', kv(id, 'k'), { value: 'x'.repeat(150) })).status).toBe(200)
      refused(
        await host.json('PUT', kv(id, 'k'), { value: 'x'.repeat(250) }),
        large('payload_too_large', /value: 252 bytes.*at most 200.*plugins\.kv\.max_value_bytes/),
      )
    },
    async 'plugins.kv.max_value_depth'({ host, agent }) {
      const id = await agent()
      expect((await host.json('PUT', kv(id, 'k'), { value: [1] })).status).toBe(200)
      refused(
        await host.json('PUT', kv(id, 'k'), { value: [[[1]]] }),
        large('invalid_request', /3.*plugins\.kv\.max_value_depth/),
      )
    },
    async 'plugins.kv.max_keys_per_agent'({ host, agent }) {
      const [id, other] = [await agent(), await agent()]
      for (const key of ['a', 'b', 'c', 'a'])
        expect((await host.json('PUT', kv(id, key), { value: 1 })).status).toBe(200)
      refused(
        await host.json('PUT', kv(id, 'd'), { value: 1 }),
        large('invalid_request', /3.*plugins\.kv\.max_keys_per_agent/),
      )
      expect((await host.json('PUT', kv(other, 'd'), { value: 1 })).status).toBe(200)
    },
    async 'plugins.kv.max_import_bytes'({ host, agent }) {
      const id = await agent()
      const load = (chars: number) =>
        host.json('POST', `/api/agents/${id}/memory/import`, { kv: { a: 'x'.repeat(100) }, more: 'x'.repeat(chars) })
      expect((await load(100)).status).toBe(200)
      refused(await load(3000), large('payload_too_large', /larger than 2048 bytes/))
    },
    async 'plugins.memory.max_key_chars'({ agent, tool }) {
      const id = await agent()
      expect((await tool(id, 'memory_store', { key: 'k'.repeat(20), value: 'x' })).failed).toBe(false)
      expect(await tool(id, 'memory_store', { key: 'k'.repeat(21), value: 'x' })).toMatchObject({
        failed: true,
        text: expect.stringMatching(/key: at most 20 characters.*plugins\.memory\.max_key_chars/),
      })
    },
    async 'plugins.memory.max_value_chars'({ agent, tool }) {
      const id = await agent()
      expect((await tool(id, 'memory_store', { key: 'k', value: 'x'.repeat(100) })).failed).toBe(false)
      expect(await tool(id, 'memory_store', { key: 'k', value: 'x'.repeat(101) })).toMatchObject({
        failed: true,
        text: expect.stringMatching(/value: at most 100 characters.*plugins\.memory\.max_value_chars/),
      })
    },
    async 'plugins.memory.max_notes_per_agent'({ agent, tool }) {
      const id = await agent()
      for (const key of ['a', 'b', 'b'])
        expect((await tool(id, 'memory_store', { key, value: 'x' })).failed).toBe(false)
      expect(await tool(id, 'memory_store', { key: 'c', value: 'x' })).toMatchObject({
        failed: true,
        text: expect.stringMatching(/2.*plugins\.memory\.max_notes_per_agent/),
      })
    },
    async 'plugins.files.max_file_bytes'({ host, agent, tool }) {
      const id = await agent()
      const write = (bytes: number) =>
        host.json('PUT', `/api/agents/${id}/files/notes.txt`, { content: 'x'.repeat(bytes) })
      expect((await write(500)).status).toBe(200)
      refused(await write(501), large('payload_too_large', /500 bytes.*plugins\.files\.max_file_bytes/))
      expect(await tool(id, 'file_write', { path: 'b.txt', content: 'x'.repeat(501) })).toMatchObject({
        failed: true,
        text: expect.stringMatching(/500 bytes.*plugins\.files\.max_file_bytes/),
      })
    },
    async 'plugins.files.max_upload_bytes'({ host, agent }) {
      const id = await agent()
      const upload = async (bytes: number) => {
        const response = await host.fetch(`/api/agents/${id}/upload`, {
          method: 'POST',
          headers: { 'content-type': 'text/plain', 'x-filename': 'a.txt' },
          body: 'x'.repeat(bytes),
        })
        return { status: response.status, headers: response.headers, body: await response.json() }
      }
      expect((await upload(500)).status).toBe(201)
      refused(
        await upload(60_000),
        large('payload_too_large', /500 bytes.*plugins\.files\.max_upload_bytes|larger than \d+ bytes/),
      )
      refused(await upload(501), large('payload_too_large', /500 bytes.*plugins\.files\.max_upload_bytes/))
    },
    async 'plugins.files.max_identity_bytes'({ host, agent }) {
      const id = await agent()
      const write = (bytes: number) =>
        host.json('PUT', `/api/agents/${id}/files/SOUL.md`, { content: 'x'.repeat(bytes) })
      expect((await write(300)).status).toBe(200)
      refused(await write(301), large('payload_too_large', /300 bytes.*plugins\.files\.max_identity_bytes/))
    },
    async 'plugins.agents.max_manifest_bytes'({ host }) {
      const spawn = (name: string, bytes: number) =>
        host.json('POST', '/api/agents', { manifest_toml: `name = "${name}"\n# ${'x'.repeat(bytes)}` })
      expect((await spawn('small', 1900)).status).toBe(201)
      refused(
        await spawn('big', 2000),
        large('payload_too_large', /manifest_toml: at most 2000 bytes.*plugins\.agents\.max_manifest_bytes/),
      )
    },
    async 'plugins.agents.max_bulk'({ host }) {
      const spawn = (names: readonly string[]) =>
        host.json('POST', '/api/agents/bulk', { agents: names.map((name) => ({ manifest_toml: `name = "${name}"` })) })
      expect((await spawn(['bulk-a', 'bulk-b'])).status).toBeLessThan(300)
      refused(
        await spawn(['bulk-c', 'bulk-d', 'bulk-e']),
        large('invalid_request', /at most 2.*plugins\.agents\.max_bulk/),
      )
    },
    async 'plugins.agents.max_depth'({ host, agent, tool }) {
      const id = await agent()
      expect(
        await tool(id, 'agent_spawn', {
          manifest_toml: `name = "child-of-${id}"\n[capabilities]\ntools = ["agent_spawn"]\nagent_spawn = true\n`,
        }),
      ).toMatchObject({ failed: false })
      const children = (await host.json('GET', '/api/agents')).body as { id: string; name: string }[]
      const child = children.find(({ name }) => name === `child-of-${id}`)?.id ?? ''
      expect(await tool(child, 'agent_spawn', { name: `grandchild-of-${id}`, system_prompt: 'x' })).toMatchObject({
        failed: true,
        text: expect.stringMatching(/2 generations deep, at most 1.*plugins\.agents\.max_depth/),
      })
    },
    async 'plugins.agents.max_descendants'({ agent, tool }) {
      const id = await agent()
      for (const n of [1, 2])
        expect(await tool(id, 'agent_spawn', { name: `many-${n}-${id}`, system_prompt: 'x' })).toMatchObject({
          failed: false,
        })
      expect(await tool(id, 'agent_spawn', { name: `many-3-${id}`, system_prompt: 'x' })).toMatchObject({
        failed: true,
        text: expect.stringMatching(/at most 2.*plugins\.agents\.max_descendants/),
      })
    },
    async 'plugins.tasks.max_open'({ agent, tool }) {
      const id = await agent()
      for (const title of ['a', 'b'])
        expect((await tool(id, 'task_post', { title, description: 'x' })).failed).toBe(false)
      expect(await tool(id, 'task_post', { title: 'c', description: 'x' })).toMatchObject({
        failed: true,
        text: expect.stringMatching(/2 tasks are open already.*plugins\.tasks\.max_open/),
      })
    },
    async 'plugins.events.payload_bytes'({ agent, tool }) {
      const id = await agent()
      const publish = (chars: number) =>
        tool(id, 'event_publish', { event_type: 'report.ready', payload: { text: 'x'.repeat(chars) } })
      expect(await publish(50)).toMatchObject({ failed: false })
      expect(await publish(200)).toMatchObject({
        failed: true,
        text: expect.stringMatching(/100.*plugins\.events\.payload_bytes/),
      })
    },
    async 'plugins.catalog.max_aliases'({ post }) {
      expect((await post('/api/models/aliases', { alias: 'one', model_id: 'gpt-5-mini' })).status).toBe(201)
      refused(
        await post('/api/models/aliases', { alias: 'two', model_id: 'gpt-5-mini' }),
        large('invalid_request', /1 aliases.*max_aliases/),
      )
    },
    async 'plugins.catalog.max_custom_models'({ post }) {
      expect((await post('/api/models/custom', { id: 'acme/one', provider: 'openai' })).status).toBe(201)
      refused(
        await post('/api/models/custom', { id: 'acme/two', provider: 'openai' }),
        large('invalid_request', /1 custom models.*max_custom_models/),
      )
    },
    async 'plugins.approvals.pending_per_agent'({ agent, post }) {
      const [id, other] = [await agent(), await agent()]
      const ask = (of: string) =>
        post('/api/approvals', { agent_id: of, action: 'shell_exec', description: 'x', payload: {} })
      for (let n = 0; n < 2; n++) expect((await ask(id)).status).toBe(201)
      refused(await ask(id), {
        status: 429,
        says: /2 approvals of this agent are pending.*plugins\.approvals\.pending_per_agent/,
      })
      expect((await ask(other)).status).toBe(201)
    },
    async 'plugins.approvals.payload_bytes'({ agent, post }) {
      const id = await agent()
      const ask = (chars: number) =>
        post('/api/approvals', {
          agent_id: id,
          action: 'shell_exec',
          description: 'x',
          payload: { text: 'x'.repeat(chars) },
        })
      expect((await ask(100)).status).toBe(201)
      refused(await ask(400), large('payload_too_large', /payload: \d+ bytes.*300.*plugins\.approvals\.payload_bytes/))
    },
    async 'plugins.backups.max_backups'({ post }) {
      expect((await post('/api/backup', {})).status).toBe(200)
      refused(await post('/api/backup', {}), large('conflict', /1 backups already.*plugins\.backups\.max_backups/))
    },
  },
}
