import type * as fs from 'node:fs/promises'
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest'
import type { Agent, Agents } from '../../../plugins/agents/contract.ts'
import type { Audit } from '../../../plugins/audit/contract.ts'
import { Folders } from '../../../plugins/files/folders.ts'
import { SizeLimits } from '../../../plugins/files/size-limits.ts'
import { WorkspaceService } from '../../../plugins/files/service.ts'
import { fileTools } from '../../../plugins/files/tools.ts'
import type { ToolCallContext } from '../../../core/tools/tool.ts'

// The tests may run as root, whom no permission stops: the system calls answer as they would to anyone else.
vi.mock('node:fs/promises', async (original) => {
  const real = await original<typeof fs>()
  const fail = (code: string): never => {
    throw Object.assign(new Error(code), { code })
  }
  // Folders are opened first and then named by their descriptor.
  return {
    ...real,
    lstat: ((path: string) => {
      if (path.endsWith('/locked.txt')) fail('EACCES')
      return path.endsWith('/gone.txt') ? fail('ENOENT') : real.lstat(path)
    }) as typeof real.lstat,
    open: ((path: string, ...rest: [string, number]) =>
      /\/(locked|secret\.txt)$/.test(path) ? fail('EACCES') : real.open(path, ...rest)) as typeof real.open,
  }
})

const agent = { id: '00000000-0000-4000-8000-000000000001', manifest: { generate_identity_files: false } } as Agent
const agents = { require: () => Promise.resolve(agent), find: () => Promise.resolve(agent) } as unknown as Agents
const audit = { write: () => Promise.resolve() } as unknown as Audit
let base: string
let workspaces: WorkspaceService
beforeAll(async () => {
  base = await mkdtemp(join(tmpdir(), 'svc-unreadable-'))
  workspaces = new WorkspaceService({
    agents,
    folders: new Folders(base, 1000),
    sizes: new SizeLimits({ maxFileBytes: 1000, maxUploadBytes: 1000, maxIdentityBytes: 1000 }),
  })
  const root = await workspaces.root(agent.id)
  await mkdir(join(root, 'locked'))
  for (const name of ['fine.txt', 'gone.txt', 'locked.txt', 'secret.txt']) await writeFile(join(root, name), 'four')
})
afterAll(async () => {
  await rm(base, { recursive: true, force: true })
})
const changes = () => Promise.reject(new Error('not used'))
async function run(name: string, args: object): Promise<string> {
  const tool = fileTools(workspaces, changes, audit).find((each) => each.name === name)
  const answer = await tool?.run(args, { agentId: agent.id, signal: new AbortController().signal } as ToolCallContext)
  return typeof answer === 'string' ? answer : (answer?.text ?? '')
}

describe('a file that cannot be read', () => {
  it('is listed for the agent with the reason, and told from one that is gone', async () => {
    expect(JSON.parse(await run('file_list', { path: '.' }))).toEqual({
      entries: [
        { name: 'fine.txt', type: 'file', size_bytes: 4 },
        { name: 'gone.txt', type: 'file', size_bytes: null, problem: 'removed while the folder was listed' },
        { name: 'locked', type: 'folder' },
        { name: 'locked.txt', type: 'file', size_bytes: null, problem: 'permission denied' },
        { name: 'secret.txt', type: 'file', size_bytes: 4 },
      ],
      total: 5,
    })
  })

  it('is in the list of all files with the reason, and so is a folder', async () => {
    expect((await workspaces.list(agent.id)).map(({ name, problem }) => [name, problem])).toEqual([
      ['fine.txt', undefined],
      ['locked', 'permission denied'],
      ['locked.txt', 'permission denied'],
      ['secret.txt', undefined],
    ])
  })

  it.each([
    ['file_list', { path: 'locked' }, '"locked" cannot be read: permission denied'],
    ['file_read', { path: 'secret.txt' }, '"secret.txt" cannot be read: permission denied'],
    ['file_read', { path: 'locked.txt' }, '"locked.txt" cannot be read: permission denied'],
  ])('is refused by %s of %j', async (tool, args, message) => {
    await expect(run(tool, args)).rejects.toMatchObject({ code: 'forbidden', message })
  })
})
