import { copyFile, mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { eventually } from '../../support/eventually.ts'
import { startHost } from '../../support/host.ts'
import type { TestHost } from '../../support/host.ts'
import type { Json } from '../../support/json.ts'
import { turnPlugins } from '../plugin-test.ts'

let folder: string
const hosts: TestHost[] = []
const homeOf = (name: string): string => join(folder, name)
async function start(name: string): Promise<TestHost> {
  await mkdir(join(homeOf(name), 'workflows'), { recursive: true })
  const host = await startHost({
    home: homeOf(name),
    plugins: [...turnPlugins, 'queue', 'approvals', 'workflows'],
    config: { database_url: `sqlite:${join(folder, 'shared.db')}` },
  })
  hosts.push(host)
  return host
}
const stop = async (host: TestHost): Promise<void> => {
  hosts.splice(hosts.indexOf(host), 1)
  await host[Symbol.asyncDispose]()
}
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'svc-workflows-shared-'))
})
afterAll(async () => {
  for (const host of hosts) await host[Symbol.asyncDispose]()
  await rm(folder, { recursive: true, force: true })
})
const text = (seconds: number) =>
  `name = "of a file"\n[[steps]]\nname = "hold"\ntype = "wait"\nwith = { seconds = ${seconds} }\n`
const put = (home: string, name: string, seconds: number) =>
  writeFile(join(homeOf(home), 'workflows', name), text(seconds))
const drop = (home: string, name: string) => rm(join(homeOf(home), 'workflows', name))
/** Files in force, with the seconds that their workflows wait. */
async function inForce(host: TestHost): Promise<readonly unknown[]> {
  const { body } = await host.json('GET', '/api/workflows')
  const found: unknown[] = []
  for (const { id, file } of body.toSorted((a: Json, b: Json) => (a.file < b.file ? -1 : 1)))
    found.push([file, (await host.json('GET', `/api/workflows/${id}`)).body.steps[0].with.seconds])
  return found
}
const problem = async (host: TestHost, name: string): Promise<string | null> =>
  (await host.json('GET', '/api/workflows/files')).body.files.find(({ file }: Json) => file === name)?.problem

describe('two homes on one database', () => {
  it('keep the files of each other, share equal ones, and a workflow is gone with its last file', async () => {
    await mkdir(join(homeOf('left'), 'workflows'), { recursive: true })
    await mkdir(join(homeOf('right'), 'workflows'), { recursive: true })
    await put('left', 'left.toml', 1)
    await put('right', 'right.toml', 2)
    for (const home of ['left', 'right']) await put(home, 'same.toml', 3)
    const left = await start('left')
    // The secrets of a database are those of one key.
    for (const name of ['vault.key', 'audit.anchor'])
      await copyFile(join(homeOf('left'), name), join(homeOf('right'), name))
    const right = await start('right')
    const all = [
      ['left.toml', 1],
      ['right.toml', 2],
      ['same.toml', 3],
    ]
    await eventually(async () => expect(await inForce(left)).toEqual(all))

    // One after the other, as homes are updated.
    await put('left', 'same.toml', 4)
    await eventually(async () => expect((await inForce(right)).at(-1)).toEqual(['same.toml', 4]))
    await put('right', 'same.toml', 3)
    await eventually(async () => expect(await problem(right, 'same.toml')).toContain('another daemon on this database'))
    await put('right', 'same.toml', 4)
    await eventually(async () => expect(await problem(right, 'same.toml')).toBeNull())

    await drop('left', 'same.toml')
    await put('left', 'mark.toml', 5)
    await eventually(async () => expect((await inForce(left)).at(1)).toEqual(['mark.toml', 5]))
    expect((await inForce(left)).at(-1)).toEqual(['same.toml', 4])
    await drop('right', 'same.toml')
    await eventually(async () => expect(await inForce(left)).toHaveLength(3))
  })

  it('with different files of one name: the first one stays in force, and the other is told why', async () => {
    const [left, right] = hosts as [TestHost, TestHost]
    await put('left', 'news.toml', 6)
    await eventually(async () => expect(await inForce(left)).toContainEqual(['news.toml', 6]))
    await put('right', 'news.toml', 7)
    await eventually(async () => expect(await problem(right, 'news.toml')).toContain('or rename one'))
    expect(await inForce(right)).toContainEqual(['news.toml', 6])
  })

  it('of which one is gone for good: its workflows are removed over the API, those of an own file are not', async () => {
    const [left, right] = hosts as [TestHost, TestHost]
    await stop(right)
    const { body } = await left.json('GET', '/api/workflows')
    const idOf = (name: string): string => body.find(({ file }: Json) => file === name).id
    expect((await left.json('DELETE', `/api/workflows/${idOf('left.toml')}`)).status).toBe(409)
    expect((await left.json('DELETE', `/api/workflows/${idOf('right.toml')}`)).status).toBe(200)
    expect((await inForce(left)).map((each) => (each as string[])[0])).toEqual(['left.toml', 'mark.toml', 'news.toml'])
  })
})
