import { hash, verify } from 'node:crypto'
import { join } from 'node:path'
import { afterEach, describe, expect, it } from 'vitest'
import { openVault } from '../../../core/storage/vault-file.ts'
import { AnchorFile } from '../../../plugins/audit/anchor.ts'
import { bodyOf, hashOf, ORIGIN } from '../../../plugins/audit/chain.ts'
import { migrations } from '../../../plugins/audit/migrations.ts'
import { AuditTrail } from '../../../plugins/audit/service.ts'
import { BLOCK, Frontier, leafOf, rootFrom } from '../../../plugins/audit/tree/merkle.ts'
import { Signer } from '../../../plugins/audit/tree/signer.ts'
import { openWriters } from '../../../plugins/audit/writers/open.ts'
import { engines, open, recorder } from '../../core/storage/engines.ts'
import type { EngineName } from '../../core/storage/engines.ts'

/** A trail writes its anchor a second after an entry: by then the database may be gone. */
const trails: AuditTrail[] = []
async function closeTrails(): Promise<void> {
  for (const trail of trails.splice(0)) await trail.close()
}
afterEach(closeTrails)

async function start(engine: EngineName, rows: number, timestamp?: (n: number) => string) {
  await closeTrails()
  const opened = await open(engine)
  await opened.database.migrate('audit', migrations)
  const { log, lines } = recorder()
  const vault = (await openVault(opened.database, { file: join(opened.dir, 'vault.key') }, log)).forPlugin('audit')
  const writers = engine === 'sqlite' ? undefined : openWriters(opened.database.sql, 'home')
  const anchor = new AnchorFile(join(opened.dir, 'audit.anchor'), vault, writers)
  const next = (): AuditTrail => {
    const trail = new AuditTrail({ db: opened.database.sql, anchor, signer: new Signer(vault, writers), log, writers })
    trails.push(trail)
    return trail
  }
  const trail = next()
  const db = opened.database.sql
  const add = async (from: number, to: number): Promise<void> => {
    for (let first = from; first <= to; first += 5_000) {
      await db.batch(
        Array.from({ length: Math.min(5_000, to - first + 1) }, (_, n) => {
          const at = timestamp?.(first + n)
          return at === undefined
            ? trail.entry({ event: 'agent_message', agentId: 'a', details: `message ${first + n}` })
            : trail.store.append({
                timestamp: at,
                event_type: 'agent_message',
                agent_id: 'a',
                details: `message ${first + n}`,
              })
        }),
      )
    }
  }
  await add(1, rows)
  return { ...opened, db, trail, next, add, lines }
}

/** Somebody with the database but without the keys: entries from here on tell another story, and fit to each other. */
async function rewrite(
  { db, trail }: Pick<Awaited<ReturnType<typeof start>>, 'db' | 'trail'>,
  from: number,
): Promise<void> {
  let prev = (await trail.store.find(from - 1))?.hash ?? ORIGIN
  for (const link of await trail.store.after(from - 1, 10_000)) {
    const changed = { ...link, details: `${link.details}, or so` }
    const next = hashOf(link.id, prev, bodyOf(changed))
    await db.run`UPDATE audit_entry SET details = ${changed.details}, prev_hash = ${prev}, hash = ${next}
      WHERE id = ${link.id}`
    prev = next
  }
}

describe('the tree', () => {
  it('has the roots of RFC 6962', () => {
    const inputs = ['', '00', '10', '2021', '3031', '40414243', '5051525354555657', '606162636465666768696a6b6c6d6e6f']
    const frontier = new Frontier()
    expect(frontier.root().toString('hex')).toBe('e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855')
    const roots = inputs.map((text) => {
      frontier.add(hash('sha256', Buffer.concat([Buffer.from([0]), Buffer.from(text, 'hex')]), 'buffer'))
      return frontier.root().toString('hex')
    })
    expect(roots[0]).toBe('6e340b9cffb37a989ca544e6bb780a2c78901d3fb33738768511a30617afa01d')
    expect(roots[6]).toBe('ddb89be403809e325750d3d263cd78929c2942b7942a34b77e122c9594a74c8c')
    expect(roots[7]).toBe('5dc9da79a70659a9ad559cb701ded9a2ab9d823aad2f4960cfe370eff4604328')
  })

  it('grows by whole blocks as by single leaves', () => {
    const leaves = Array.from({ length: BLOCK * 3 + 5 }, (_, n) => leafOf(hash('sha256', String(n))))
    const [single, blocks] = [new Frontier(), new Frontier()]
    const roots = leaves.map((leaf) => single.add(leaf)).filter((root) => root !== undefined)
    expect(roots).toHaveLength(3)
    for (const root of roots) blocks.addBlock(root)
    for (const leaf of leaves.slice(BLOCK * 3)) blocks.add(leaf)
    expect(blocks.root()).toEqual(single.root())
    expect(() => blocks.addBlock(single.root())).toThrow(/block/)
  })
})

describe.each(engines)('checkpoints on %s', (engine) => {
  it('are signed with a key of the vault, over what is there, and once', async () => {
    const { trail, next, add } = await start(engine, 7)
    await trail.checkpoint()
    await trail.checkpoint()
    const verdict = await trail.verify()
    expect(verdict).toMatchObject({ status: 'valid', valid: true, checkpoint: { size: 7 } })
    const { size, root, timestamp, signature } = verdict.checkpoint ?? expect.fail('no checkpoint')
    expect(
      verify(
        null,
        Buffer.from(`svc-audit-checkpoint-1:${size}:${root}:${timestamp}`),
        verdict.public_key ?? '',
        Buffer.from(signature, 'base64'),
      ),
    ).toBe(true)
    expect(await trail.checkpoints.store.checkpoints(10)).toHaveLength(1)
    await add(8, 9)
    const restarted = next()
    await restarted.checkpoint()
    expect((await restarted.checkpoints.store.checkpoints(10)).map((checkpoint) => checkpoint.size)).toEqual([9, 7])
    expect(await restarted.verify()).toMatchObject({
      status: 'valid',
      checkpoint: { size: 9, key_id: verdict.checkpoint?.key_id },
    })
  })

  it('find a story written anew by somebody who could not sign', async () => {
    const all = await start(engine, 30)
    await all.trail.checkpoint()
    await all.add(31, 40)
    await all.trail.checkpoint()
    await rewrite(all, 35)
    expect(await all.trail.verify()).toMatchObject({
      status: 'invalid',
      first_invalid_id: 31,
      reason: expect.stringMatching(/checkpoint 40/),
    })
  })

  it('find a cut end and a forged signature', async () => {
    const { db, trail } = await start(engine, 12)
    await trail.checkpoint()
    await db.run`DELETE FROM audit_entry WHERE id > 10`
    expect(await trail.verify()).toMatchObject({ status: 'invalid', first_invalid_id: 11 })
    const forged = await start(engine, 3)
    await forged.trail.checkpoint()
    await forged.db.run`UPDATE audit_checkpoint SET timestamp = '2020-01-01T00:00:00.000Z'`
    expect(await forged.trail.verify()).toMatchObject({
      status: 'invalid',
      reason: 'checkpoint 3 is not signed by this daemon',
    })
  })

  it('whose key is gone, or that are no checkpoints any more, make the chain invalid', async () => {
    const { db, trail } = await start(engine, 3)
    await trail.checkpoint()
    await db.run`UPDATE audit_checkpoint SET root = 'no root'`
    expect(await trail.verify()).toMatchObject({ status: 'invalid', reason: expect.stringMatching(/checkpoint 3/) })
    const keyless = await start(engine, 3)
    await keyless.trail.checkpoint()
    await keyless.database.sql.run`DELETE FROM core_vault WHERE name = 'checkpoint-key'`
    expect(await keyless.trail.verify()).toMatchObject({
      status: 'invalid',
      reason: expect.stringMatching(/signing key of the checkpoints is missing/),
    })
  })

  it('none is signed over a broken chain', async () => {
    const { db, trail, add, lines } = await start(engine, 10)
    await trail.checkpoint()
    await db.run`DELETE FROM audit_entry WHERE id = 10`
    await add(11, 12)
    await trail.checkpoint()
    await add(13, 14)
    await trail.checkpoint()
    expect(await trail.checkpoints.store.checkpoints(10)).toHaveLength(1)
    expect(lines.join('\n')).toMatch(/no checkpoint is signed/)
  })
})

describe('a proof of inclusion', () => {
  it('leads from every entry to the signed root, and from no other', async () => {
    const { trail, add } = await start('sqlite', BLOCK * 2 + 9)
    await trail.checkpoint()
    await add(BLOCK * 2 + 10, BLOCK * 2 + 11)
    for (const id of [1, 2, BLOCK, BLOCK + 1, BLOCK * 2, BLOCK * 2 + 1, BLOCK * 2 + 8, BLOCK * 2 + 9]) {
      const proof = (await trail.checkpoints.prove(id)) ?? expect.fail(`no proof of ${id}`)
      const entry = await trail.store.find(id)
      const path = proof.path.map((node) => Buffer.from(node, 'hex'))
      const { size, root } = proof.checkpoint
      expect(path.length).toBeLessThanOrEqual(12)
      expect(rootFrom(id - 1, size, leafOf(entry?.hash ?? ''), path)?.toString('hex')).toBe(root)
      expect(rootFrom(id - 1, size, leafOf('f'.repeat(64)), path)?.toString('hex')).not.toBe(root)
      expect(rootFrom(id % size, size, leafOf(entry?.hash ?? ''), path)?.toString('hex')).not.toBe(root)
    }
    expect(await trail.checkpoints.prove(BLOCK * 2 + 10)).toBeUndefined()
    expect(await trail.checkpoints.prove(0)).toBeUndefined()
  })
})

describe('retention', () => {
  const day = (n: number): string => new Date(Date.now() - (n <= BLOCK * 2 + 100 ? 100 : 1) * 86_400_000).toISOString()

  it('drops whole old blocks, says so in the trail, and what is left verifies against roots from before', async () => {
    const { trail, next } = await start('sqlite', BLOCK * 3, day)
    await trail.anchor()
    await trail.checkpoint()
    await trail.retire(0, new AbortController().signal)
    expect((await trail.verify()).first_entry).toBe(1)
    await trail.retire(90, new AbortController().signal)
    const verdict = await trail.verify()
    expect(verdict).toMatchObject({
      status: 'valid',
      first_entry: BLOCK * 2 + 1,
      last_entry: BLOCK * 3 + 2,
      chain_length: BLOCK + 2,
      origin: { entry_id: BLOCK * 2 },
    })
    const [, last] = await trail.store.recent(2, { agentId: undefined, eventType: 'retention_trimmed' })
    expect(last?.details).toMatch(new RegExp(`entries ${BLOCK + 1} to ${BLOCK * 2} .*${verdict.origin?.hash}`))
    expect(await trail.checkpoints.prove(5)).toBeUndefined()
    expect(await trail.checkpoints.prove(BLOCK * 2 + 1)).toBeDefined()
    const restarted = next()
    await restarted.anchor()
    await restarted.checkpoint()
    expect(await restarted.verify()).toMatchObject({ status: 'valid', checkpoint: { size: BLOCK * 3 + 2 } })
  })

  it('keeps what does not verify, and what no checkpoint covers', async () => {
    const { db, trail, lines } = await start('sqlite', BLOCK * 2, () => '2020-01-01T00:00:00.000Z')
    await trail.retire(90, new AbortController().signal)
    expect((await trail.verify()).first_entry).toBe(1)
    await trail.checkpoint()
    await db.run`UPDATE audit_entry SET details = 'x' WHERE id = 5`
    await trail.retire(90, new AbortController().signal)
    expect(await trail.verify()).toMatchObject({ status: 'invalid', first_entry: 1, first_invalid_id: 5 })
    expect(lines.join('\n')).toMatch(/do not verify/)
  })

  it('under a walk is not taken for tampering', async () => {
    const { trail } = await start('sqlite', BLOCK * 4, () => '2020-01-01T00:00:00.000Z')
    await trail.anchor()
    await trail.checkpoint()
    const [verdict] = await Promise.all([trail.verify(), trail.retire(90, new AbortController().signal)])
    expect(verdict).toMatchObject({ status: 'valid' })
    expect((await trail.verify()).origin).toMatchObject({ entry_id: BLOCK * 4 })
  })

  it('a start cut off by somebody who cannot sign is found', async () => {
    const { db, trail } = await start('sqlite', BLOCK * 2)
    await trail.checkpoint()
    const last = await trail.store.find(BLOCK)
    await db.batch([
      db.sql`DELETE FROM audit_entry WHERE id <= ${BLOCK}`,
      db.sql`INSERT INTO audit_origin (id, entry_id, hash, key_id, signature)
        VALUES (1, ${BLOCK}, ${last?.hash ?? ''}, 'aaaa', 'bbbb')`,
    ])
    expect(await trail.verify()).toMatchObject({
      status: 'invalid',
      reason: expect.stringMatching(/dropped entries is not signed/),
    })
  })
})

it('a hundred thousand entries verify, and other work runs after every block of them', async () => {
  const { trail } = await start('sqlite', 100_000)
  await trail.anchor()
  await trail.checkpoint()
  let turns = 0
  let running = true
  const countTurn = (): void => {
    turns++
    if (running) setImmediate(countTurn)
  }
  setImmediate(countTurn)
  const verdict = await trail.verify()
  running = false
  expect(verdict).toMatchObject({ status: 'valid', chain_length: 100_000, checkpoint: { size: 100_000 } })
  expect(turns).toBeGreaterThanOrEqual(Math.floor(100_000 / BLOCK))
})
