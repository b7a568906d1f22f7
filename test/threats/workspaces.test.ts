import { mkdir, mkdtemp, readdir, realpath, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { eventually } from '../support/eventually.ts'
import { startHost } from '../support/host.ts'
import { openTools } from '../support/tool-stage.ts'

/** Swaps a folder and a link as fast as the machine can: each moment between a check and a use meets both. */
const swap =
  'my ($call, $one, $other) = @ARGV; $| = 1; my $at = time; print "swapping\\n"; while (time - $at < 120) { for (1 .. 10000) { syscall($call + 0, -100, $one, -100, $other, 2) } }'
const renameat2 = process.arch === 'arm64' ? 276 : 316

describe.runIf(process.platform === 'linux')(
  'threats: a workspace that its program changes under the file tools',
  () => {
    it('a folder swapped for a link between check and use lets no tool write, remove, make or list outside', async () => {
      await using tools = await openTools(['shell'])
      const { home } = tools.host
      const agent = await tools.spawn('racer', 'shell = ["*"]')
      const target = join(home, 'target')
      await mkdir(target)
      await writeFile(join(target, 'vault.key'), 'the-key')
      await writeFile(join(target, 'only-outside'), '')
      await tools.call(agent, 'file_write', { path: 'a/vault.key', content: 'decoy' })
      await tools.call(agent, 'shell_exec', { command: `ln -s ${target} b` })
      const { process_id } = await tools.json(agent, 'process_start', {
        command: 'perl',
        args: ['-e', swap, String(renameat2), 'a', 'b'],
      })
      const listed: string[] = []
      const intact = async (): Promise<boolean> =>
        (await readdir(target)).toSorted().join() === 'only-outside,vault.key' && listed.length === 0
      const until = performance.now() + 3000
      for (let round = 0; performance.now() < until && (await intact()); round++) {
        const [, , , { text }] = await Promise.all([
          tools.call(agent, 'file_write', { path: `a/evil-${round}.ts`, content: 'evil' }),
          tools.call(agent, 'create_directory', { path: `a/deep-${round}/er` }),
          tools.call(agent, 'apply_patch', {
            patch: `*** Begin Patch\n*** Delete File: a/vault.key\n*** End Patch`,
          }),
          tools.call(agent, 'file_list', { path: 'a' }),
          tools.call(agent, 'file_write', { path: 'a/vault.key', content: 'decoy' }),
          tools.call(agent, 'code_search', { query: 'the-key', path: 'a' }),
        ])
        if (text.includes('only-outside')) listed.push(text)
      }
      expect(listed).toEqual([])
      expect((await readdir(target)).toSorted()).toEqual(['only-outside', 'vault.key'])
      await tools.call(agent, 'process_kill', { process_id })
    })

    it.each(['data', 'data/workspaces', 'data/workspaces/below'])(
      'no file tool writes where plugins are loaded from: %s',
      async (below) => {
        const home = await realpath(await mkdtemp(join(tmpdir(), 'svc-home-')))
        await using host = await startHost({
          home,
          listen: false,
          plugins: ['audit', 'agents', 'files'],
          config: { plugins: { paths: [join(home, below)] } },
        })
        const files = host.app.daemon.plugins().find(({ name }) => name === 'files')
        expect([files?.state, files?.error]).toEqual(['failed', expect.stringContaining('plugins.paths')])
        host.defects()
      },
    )

    it('an agent that is killed while its program swaps folders takes nothing with it', async () => {
      await using tools = await openTools(['shell'])
      const target = join(tools.host.home, 'target')
      await mkdir(target)
      const names = Array.from({ length: 200 }, (_, at) => `f${at}`)
      await Promise.all(names.map((name) => writeFile(join(target, name), '')))
      const race = async (round: number): Promise<void> => {
        const agent = await tools.spawn(`racer-${round}`, 'shell = ["*"]')
        await tools.call(agent, 'shell_exec', {
          command: `sh -c 'mkdir a; cd a; touch ${names.join(' ')}; ln -s ${target} ../b'`,
        })
        const { process_id } = await tools.json(agent, 'process_start', {
          command: 'perl',
          args: ['-e', `$SIG{TERM} = "IGNORE"; ${swap}`, String(renameat2), 'a', 'b'],
        })
        await eventually(async () =>
          expect((await tools.json(agent, 'process_poll', { process_id })).output).toContain('swapping'),
        )
        await tools.host.json('DELETE', `/api/agents/${agent}`)
        expect((await readdir(target)).length).toBe(200)
      }
      await Promise.all([0, 1, 2, 3].map(race))
    })
  },
)
