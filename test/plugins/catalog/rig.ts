import { readFile } from 'node:fs/promises'
import { fileURLToPath } from 'node:url'
import * as v from 'valibot'
import { Shipped } from '../../../plugins/catalog/data.ts'
import { Models } from '../../../plugins/catalog/models.ts'
import { migrations } from '../../../plugins/catalog/migrations.ts'
import { CatalogStore } from '../../../plugins/catalog/store.ts'
import { open, recorder } from '../../core/storage/engines.ts'

export const shippedFile = fileURLToPath(new URL('../../../plugins/catalog/models.json', import.meta.url))
/** What is shipped, every entry checked. */
export async function readEntries() {
  return v.parse(Shipped, JSON.parse(await readFile(shippedFile, 'utf8'))).entries
}

/** The catalog on an empty database, at a moment. */
export async function openModels(
  now = () => new Date('2026-11-20T12:00:00Z'),
  engine: Parameters<typeof open>[0] = 'sqlite',
) {
  const { database } = await open(engine)
  await database.migrate('catalog', migrations)
  const store = new CatalogStore(database.sql, recorder().log)
  const models = new Models({ store, now, shipped: readEntries })
  await models.ready()
  return { models, store, database }
}
