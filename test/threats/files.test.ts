import { mkdtemp, readdir, readFile, rm, symlink } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { startHost } from '../support/host.ts'
import type { TestHost } from '../support/host.ts'

let host: TestHost
let agent: string
beforeAll(async () => {
  host = await startHost()
  agent = (
    await host.json('POST', '/api/agents', {
      manifest_toml: 'name = "target"\n[model]\nprovider = "builtin"\nmodel = "offline"\n',
    })
  ).body.agent_id
})
afterAll(() => host[Symbol.asyncDispose]())

describe('threats: files and rows', () => {
  it.each([
    '../svc.db',
    '..%2f..%2fvault.key',
    '../../../vault.key',
    '..%2f..%2f..%2fvault.key',
    '%2e%2e%2f%2e%2e%2f%2e%2e%2fvault.key',
    'x%2f..%2f..%2f..%2f..%2fvault.key',
    '..%252f..%252f..%252fvault.key',
    '..%5c..%5c..%5cvault.key',
    '%2e%2e/%2e%2e/vault.key',
    '..%5c..%5cvault.key',
    '....//....//vault.key',
    '%252e%252e%252fvault.key',
    '/etc/passwd',
    '%2fetc%2fpasswd',
    'a/../../../vault.key',
    'notes%00.txt',
    '~/vault.key',
    'file:%2f%2f%2fetc%2fpasswd',
    '..%c0%af..%c0%afvault.key',
  ])('Traversal: %s', async (name) => {
    const before = await readFile(join(host.home, 'vault.key'))
    for (const method of ['GET', 'PUT', 'DELETE']) {
      const response = await host.fetch(`/api/agents/${agent}/files/${name}`, {
        method,
        ...(method === 'PUT' ? { headers: { 'content-type': 'application/json' }, body: '{"content":"owned"}' } : {}),
      })
      const text = await response.text()
      // A name that only looks like a path may be a file of the workspace; nothing outside is read or changed.
      expect(text).not.toMatch(/root:|SQLite format/)
      for (const form of ['utf8', 'base64', 'hex'] as const) expect(text).not.toContain(before.toString(form).trim())
      expect(response.status).toBeLessThan(500)
    }
    expect(await readFile(join(host.home, 'vault.key'))).toEqual(before)
    expect((await readdir(host.home)).filter((entry) => entry.includes('..') || entry === 'x')).toEqual([])
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
    for (const [name, type] of [
      ['page.html', 'text/html'],
      ['drawing.svg', 'image/svg+xml'],
      ['x.js', 'text/javascript'],
      ['x.png', 'text/html; charset=utf-7'],
      ['x.pdf', 'application/pdf'],
    ] as const) {
      const form = new FormData()
      form.append(
        'file',
        new Blob(['<svg xmlns="http://www.w3.org/2000/svg" onload="alert(1)"/><script>alert(1)</script>'], { type }),
        name,
      )
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
    const home = await mkdtemp(join(tmpdir(), 'svc-threat-'))
    try {
      const first = await startHost({ home, plugins: ['audit', 'agents'] })
      for (const name of ['a', 'b', 'c', 'd'])
        await first.json('POST', '/api/agents', { manifest_toml: `name = "${name}"` })
      // Its end is anchored outside the database by then; while it runs that happens once a second.
      await first.stop()
      await using tampered = await startHost({ home, plugins: ['audit', 'agents'] })
      const valid = async (): Promise<boolean> => (await tampered.json('GET', '/api/audit/verify')).body.valid
      expect(await valid()).toBe(true)
      const database = new DatabaseSync(join(home, 'data', 'svc.db'))
      try {
        const { name: table } = database
          .prepare(
            "SELECT name FROM sqlite_master WHERE type = 'table' AND name LIKE 'audit%' AND sql LIKE '%prev_hash%'",
          )
          .get() as { name: string }
        const rows = database.prepare(`SELECT * FROM ${table} ORDER BY id`).all()
        const restore = (): void => {
          database.exec(`DELETE FROM ${table}`)
          for (const row of rows)
            database
              .prepare(
                `INSERT INTO ${table} (${Object.keys(row).join(', ')}) VALUES (${Object.keys(row)
                  .map(() => '?')
                  .join(', ')})`,
              )
              .run(...Object.values(row))
        }
        const middle = Number(rows[Math.floor(rows.length / 2)]?.['id'])
        for (const edit of [
          `UPDATE ${table} SET details = 'nothing happened' WHERE id = ${middle}`,
          `UPDATE ${table} SET agent_id = '' WHERE id = ${middle}`,
          `UPDATE ${table} SET timestamp = '2020-01-01T00:00:00.000Z' WHERE id = ${middle}`,
          `DELETE FROM ${table} WHERE id = ${middle}`,
          `DELETE FROM ${table} WHERE id >= ${middle}`,
          `DELETE FROM ${table}`,
        ]) {
          database.exec(edit)
          expect([edit, await valid()]).toEqual([edit, false])
          restore()
          expect([edit, await valid()]).toEqual([edit, true])
        }
      } finally {
        database.close()
      }
    } finally {
      await rm(home, { recursive: true, force: true })
    }
  })
})
