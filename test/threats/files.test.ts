import { readdir, readFile, symlink } from 'node:fs/promises'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { startHost } from '../support/host.ts'
import type { TestHost } from '../support/host.ts'

let host: TestHost
let agent: string
beforeAll(async () => {
  host = await startHost()
  agent = (await host.json('POST', '/api/agents', { manifest_toml: 'name = "target"\n[model]\nprovider = "builtin"\nmodel = "offline"\n' })).body.agent_id
})
afterAll(() => host[Symbol.asyncDispose]())

describe('threats: files and rows', () => {
  it.each([
    '../svc.db', '..%2f..%2fvault.key', '%2e%2e/%2e%2e/vault.key', '..%5c..%5cvault.key', '....//....//vault.key', '%252e%252e%252fvault.key', '/etc/passwd', '%2fetc%2fpasswd', 'a/../../../vault.key', 'notes%00.txt', '~/vault.key', 'file:%2f%2f%2fetc%2fpasswd', '..%c0%af..%c0%afvault.key',
  ])('Traversal: %s', async (name) => {
    const before = await readFile(join(host.home, 'vault.key'))
    for (const method of ['GET', 'PUT', 'DELETE']) {
      const response = await host.fetch(`/api/agents/${agent}/files/${name}`, { method, ...(method === 'PUT' ? { headers: { 'content-type': 'application/json' }, body: '{"content":"owned"}' } : {}) })
      const text = await response.text()
      // A name that only looks like a path may be a file of the workspace; nothing outside is read or changed.
      expect(text).not.toMatch(/root:|SQLite format/)
      expect(response.status).toBeLessThan(500)
    }
    expect(await readFile(join(host.home, 'vault.key'))).toEqual(before)
  })

  it('Traversal: a link inside the workspace', async () => {
    await host.json('PUT', `/api/agents/${agent}/files/inside.txt`, { content: 'x' })
    const all = await readdir(host.home, { recursive: true })
    const inside = all.find((name) => name.endsWith('inside.txt'))
    expect(inside).toBeDefined()
    const folder = join(host.home, inside ?? '', '..')
    await symlink(join(host.home, 'vault.key'), join(folder, 'link.txt'))
    await symlink(host.home, join(folder, 'folder'))
    for (const name of ['link.txt', 'folder/vault.key', 'folder%2fvault.key']) {
      const response = await host.fetch(`/api/agents/${agent}/files/${name}`)
      expect([400, 403, 404]).toContain(response.status)
    }
  })

  it('Stored XSS through uploads', async () => {
    for (const [name, type] of [['page.html', 'text/html'], ['drawing.svg', 'image/svg+xml'], ['x.js', 'text/javascript'], ['x.png', 'text/html; charset=utf-7'], ['x.pdf', 'application/pdf']] as const) {
      const form = new FormData()
      form.append('file', new Blob(['<svg xmlns="http://www.w3.org/2000/svg" onload="alert(1)"/><script>alert(1)</script>'], { type }), name)
      const uploaded = await (await host.fetch(`/api/agents/${agent}/upload`, { method: 'POST', body: form })).json()
      const response = await host.fetch(`/api/uploads/${uploaded.file_id}`)
      await response.arrayBuffer()
      expect(response.headers.get('content-disposition')).toMatch(/^attachment;/)
      expect(response.headers.get('x-content-type-options')).toBe('nosniff')
      expect(response.headers.get('content-security-policy')).toMatch(/sandbox/)
      expect(response.headers.get('content-type')).not.toMatch(/html|svg|xml|javascript/)
    }
  })

  it('Audit tampering by DB edit', async () => {
    await using tampered = await startHost({ plugins: ['audit', 'agents'] })
    for (const name of ['a', 'b', 'c', 'd']) await tampered.json('POST', '/api/agents', { manifest_toml: `name = "${name}"` })
    expect((await tampered.json('GET', '/api/audit/verify')).body.valid).toBe(true)
    const database = new DatabaseSync(join(tampered.home, 'data', 'svc.db'))
    try {
      const { name: table } = database.prepare("SELECT name FROM sqlite_master WHERE type = 'table' AND name LIKE 'audit%' AND sql LIKE '%prev_hash%'").get() as { name: string }
      const rows = database.prepare(`SELECT * FROM ${table} ORDER BY id`).all() as { id: number; details: string }[]
      const middle = rows[Math.floor(rows.length / 2)]
      const last = rows.at(-1)
      const edits: readonly (readonly [string, () => void, () => void])[] = [
        ['changed', () => database.prepare(`UPDATE ${table} SET details = 'nothing happened' WHERE id = ?`).run(middle?.id ?? 0), () => database.prepare(`UPDATE ${table} SET details = ? WHERE id = ?`).run(middle?.details ?? '', middle?.id ?? 0)],
        ['deleted', () => database.prepare(`DELETE FROM ${table} WHERE id = ?`).run(last?.id ?? 0), () => {
          const columns = Object.keys(last ?? {})
          database.prepare(`INSERT INTO ${table} (${columns.join(', ')}) VALUES (${columns.map(() => '?').join(', ')})`).run(...Object.values(last ?? {}) as (string | number)[])
        }],
      ]
      for (const [what, edit, undo] of edits) {
        edit()
        expect([what, (await tampered.json('GET', '/api/audit/verify')).body.valid]).toEqual([what, false])
        undo()
        expect([what, (await tampered.json('GET', '/api/audit/verify')).body.valid]).toEqual([what, true])
      }
    } finally { database.close() }
  })
})
