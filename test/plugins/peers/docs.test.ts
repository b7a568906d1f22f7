import { readFile } from 'node:fs/promises'
import { fileURLToPath } from 'node:url'
import { parse } from 'smol-toml'
import { expect, it } from 'vitest'
import { runHere } from '../../core/cli/here.ts'
import type { Json } from '../../support/json.ts'
import { Node } from './nodes.ts'

it('the two daemons of the documentation are linked, and its commands work', async () => {
  const text = await readFile(fileURLToPath(new URL('../../../docs/peers.md', import.meta.url)), 'utf8')
  const blocks = (language: string): readonly string[] =>
    [...text.matchAll(/^```(\w+)\n(.*?)^```$/gms)]
      .filter(([, name]) => name === language)
      .map(([, , code]) => code ?? '')
  const [forBob, forAlice] = blocks('toml').map((code): Json => parse(code)['network'])
  await using bob = await Node.start(forBob.node_id, { ...forBob, listen: '127.0.0.1:0' })
  const peers = forAlice.peers.map((peer: string) => peer.replace('192.0.2.7', '127.0.0.1'))
  expect(peers).toEqual(['bob@127.0.0.1:4200'])
  const moved = [`bob@127.0.0.1:${await bob.port()}`]
  const more = ['system', 'providers/builtin']
  await using alice = await Node.start(forAlice.node_id, { ...forAlice, peers: moved }, more)
  await alice.linked('bob', ({ agents }) => agents.length > 0)
  const lines = blocks('sh')
    .join('\n')
    .split('\n')
    .filter((line) => line.startsWith('svc peer'))
  expect(lines).toHaveLength(3)
  const said: string[] = []
  for (const line of lines) {
    const words = [...line.replace(/\s+#.*$/, '').matchAll(/"([^"]*)"|(\S+)/g)].map(
      ([, quoted, word]) => quoted ?? word ?? '',
    )
    const { code, stdout, stderr } = await runHere([...words.slice(1), '--home', alice.home])
    expect({ line, code, stderr }).toEqual({ line, code: 0, stderr: '' })
    said.push(stdout)
  }
  const { identity_fingerprint: key } = await bob.status()
  expect([said[0]?.includes(key), said[1]?.includes(key), said[2]?.trim()]).toEqual([true, true, 'What is new?'])
})
