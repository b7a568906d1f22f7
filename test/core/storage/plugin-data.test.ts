import { describe, expect, it } from 'vitest'
import { deleteData, describeData } from '../../../core/storage/plugin-data.ts'
import { engines, open } from './engines.ts'

describe.each(engines)('what a plugin has stored, on %s', (engine) => {
  it('is its tables by the longest name that fits, its values and its secrets; all goes at once', async () => {
    const { database } = await open(engine)
    const { sql } = database
    const ref = 'REFERENCES lake_z (id)'
    await database.migrate('lake', [
      { id: '1', sql: `CREATE TABLE lake_z (id INTEGER PRIMARY KEY); CREATE TABLE lake_a (z INTEGER ${ref})` },
      { id: '2', sql: 'INSERT INTO lake_z (id) VALUES (1); INSERT INTO lake_a (z) VALUES (1), (1)' },
    ])
    await database.migrate('lake-shore', [{ id: '1', sql: 'CREATE TABLE lake_shore_a (id INTEGER)' }])
    await sql.run`INSERT INTO core_storage (plugin, key, text, changed_at) VALUES ('lake', 'k', 'v', 'now')`
    await sql.run`INSERT INTO core_storage (plugin, key, text, changed_at) VALUES ('lake-shore', 'k', 'v', 'now')`
    const tables = [
      { name: 'lake_a', rows: 2 },
      { name: 'lake_z', rows: 1 },
    ]
    expect(await describeData(sql, 'lake', [])).toEqual({ tables, values: 1, secrets: [] })
    const refused = [sql.sql`INSERT INTO core_storage (plugin, key, text, changed_at) VALUES ('lake', 'k', 'v', 'now')`]
    await expect(deleteData(database, 'lake', [], [...refused, ...refused])).rejects.toThrow()
    expect(await describeData(sql, 'lake', [])).toEqual({ tables, values: 1, secrets: [] })
    await deleteData(database, 'lake', [], [])
    expect(await describeData(sql, 'lake', [])).toEqual({ tables: [], values: 0, secrets: [] })
    expect(await describeData(sql, 'lake-shore', [])).toMatchObject({ tables: [{ name: 'lake_shore_a' }], values: 1 })

    await sql.run`INSERT INTO core_storage (plugin, key, text, changed_at) VALUES ('core', 'k', 'v', 'now')`
    expect(await describeData(sql, 'core', [])).toEqual({ tables: [], values: 0, secrets: [] })
    await expect(deleteData(database, 'core', [], [])).rejects.toThrow('cannot be deleted')
  })
})
