import * as v from 'valibot'
import { readOwnJson } from '../schema/nesting.ts'

/** A column with JSON that svc wrote. */
export const jsonColumn = <S extends v.GenericSchema>(schema: S) =>
  v.pipe(
    v.string(),
    v.transform((text): unknown => readOwnJson(text)),
    schema,
  )
/** A number. PostgreSQL gives those of 64 bits as text. */
export const numberColumn = v.pipe(v.union([v.number(), v.string(), v.bigint()]), v.transform(Number), v.number())
/** A boolean: 0 or 1. */
export const flagColumn = v.pipe(
  numberColumn,
  v.transform((value) => value === 1),
)
/** A column that may be NULL, which is `undefined`. */
export const nullableColumn = <S extends v.GenericSchema>(schema: S) =>
  v.pipe(
    v.nullable(schema),
    v.transform((value) => value ?? undefined),
  )
