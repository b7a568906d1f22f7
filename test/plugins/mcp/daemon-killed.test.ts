import { mkdir, mkdtemp, readdir, readFile, readlink, realpath, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import Sqlite from 'better-sqlite3'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { startDaemon } from '../../support/daemon.ts'
import { eventually } from '../../support/eventually.ts'
import type { Json } from '../../support/json.ts'
import { fixture } from './servers.ts'

let home: string
beforeEach(async () => {
  home = await realpath(await mkdtemp(join(tmpdir(), 'svc-mcp-killed-')))
})
afterEach(async () => {
  for (const { pid } of await processes('')) process.kill(pid, 'SIGKILL')
  await rm(home, { recursive: true, force: true })
})
interface Process {
  readonly pid: number
  readonly command: string
  readonly parent: number
}
/** Those in the folder of a server. */
async function processes(name: string): Promise<readonly Process[]> {
  const all = (await readdir('/proc')).filter((pid) => /^\d+$/.test(pid))
  const found = await Promise.all(
    all.map(async (pid) => {
      const folder = await readlink(`/proc/${pid}/cwd`).catch(() => '')
      if (!folder.startsWith(join(home, 'mcp', name))) return []
      const [command, status] = await Promise.all(
        ['cmdline', 'status'].map((file) => readFile(`/proc/${pid}/${file}`, 'utf8').catch(() => '')),
      )
      return [{ pid: Number(pid), command: command ?? '', parent: Number(/^PPid:\s*(\d+)/m.exec(status ?? '')?.[1]) }]
    }),
  )
  return found.flat()
}
/**
 * Those that run a program. When it is killed between making its namespace and telling the first process in it to go on,
 * bubblewrap leaves that process: it waits for ever, with nothing begun.
 */
async function programs(name: string): Promise<readonly number[]> {
  const found = await processes(name)
  const parents = new Set(found.map(({ parent }) => parent))
  return found
    .filter(({ pid, command, parent }) => parent !== 1 || parents.has(pid) || !/^[^\0]*bwrap\0/.test(command))
    .map(({ pid }) => pid)
}

it('kill -9 of the daemon leaves no program of a server of the file, and none that it started', async () => {
  const args = JSON.stringify([fixture, '--fault=child'])
  await writeFile(
    join(home, 'config.toml'),
    `[[mcp_servers]]\nname = "one"\nlazy = false\ncommand = "${process.execPath}"\nargs = ${args}\n`,
  )
  await using daemon = await startDaemon({ home })
  // Its child is a session of its own and ignores SIGTERM.
  await eventually(async () => {
    const { servers } = await (await fetch(`${daemon.url}/api/mcp/servers`)).json()
    expect(servers[0].state).toBe('connected')
    const lines = await Promise.all((await programs('one')).map((pid) => readFile(`/proc/${pid}/cmdline`, 'utf8')))
    expect(lines).toContainEqual(expect.stringContaining('setInterval'))
  })
  process.kill(daemon.pid, 'SIGKILL')
  await eventually(async () => expect(await programs('one')).toEqual([]))
  await daemon.kill()
})

it('kill -9 of the daemon between the request for a server or an integration and its answer leaves nothing of them', async () => {
  // They start, say what they are called and never list their tools. A home of their own holds nothing before.
  const said = '{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"half","version":"1"}}'
  const hang = `$| = 1; while (<STDIN>) { print qq({"jsonrpc":"2.0","id":$1,"result":${said}}\\n) if /"id":(\\d+)/ && /"initialize"/ }`
  const half = { name: 'half', command: 'perl', args: ['-e', hang], env: ['TOKEN'], credentials: { TOKEN: 'tok-0815' } }
  const kept = (): Json => {
    const db = new Sqlite(join(home, 'data', 'svc.db'), { readonly: true })
    const column = (query: string) => db.prepare(query).pluck().all()
    try {
      return {
        servers: column('SELECT name FROM mcp_server UNION ALL SELECT name FROM mcp_server_attempt'),
        pins: column('SELECT server FROM mcp_tool_pin UNION ALL SELECT server FROM mcp_tool_list'),
        integrations: column('SELECT id FROM integrations_installed'),
        secrets: column("SELECT name FROM core_vault WHERE plugin = 'mcp'"),
      }
    } finally {
      db.close()
    }
  }
  const nothing = { servers: [], pins: [], integrations: [], secrets: [] }
  await mkdir(join(home, 'integrations'))
  await writeFile(
    join(home, 'integrations', 'tracker.toml'),
    [
      'id = "tracker"\nname = "Tracker"\ndescription = "Issues"\ncategory = "devtools"',
      `[transport]\ntype = "stdio"\ncommand = "perl"\nargs = ${JSON.stringify(half.args)}`,
      '[[required_env]]\nname = "TOKEN"\nlabel = "Key"\n',
    ].join('\n'),
  )
  {
    await using daemon = await startDaemon({ home })
    const post = (path: string, body: object): Promise<unknown> =>
      fetch(`${daemon.url}${path}`, {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify(body),
      }).then(
        ({ status }) => status,
        () => 'cut off',
      )
    const answers = [
      post('/api/mcp/servers', half),
      post('/api/integrations/add', { type: 'tracker', token: 'tok-0816' }),
    ]
    await eventually(async () => {
      expect(await programs('half')).not.toEqual([])
      expect(await programs('tracker')).not.toEqual([])
    })
    process.kill(daemon.pid, 'SIGKILL')
    expect(await Promise.all(answers)).toEqual(answers.map(() => 'cut off'))
    await eventually(async () => expect(await programs('')).toEqual([]))
    await daemon.kill()
    expect(kept()).toMatchObject({ servers: ['half', 'tracker'], integrations: ['tracker'], secrets: [] })
  }
  await using daemon = await startDaemon({ home })
  await eventually(async () => {
    const { servers } = await (await fetch(`${daemon.url}/api/mcp/servers`)).json()
    expect(servers).toEqual([])
    expect(kept()).toEqual(nothing)
  })
  expect(await readdir(join(home, 'mcp'))).toEqual([])
  await daemon.stop()
})
