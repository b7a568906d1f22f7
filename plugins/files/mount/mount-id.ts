import type { Limits } from '../schema.ts'

/** The same in daemons that work on the same files; `undefined` for a folder, which says it itself. */
export function mountId({ mount, s3 }: Limits): string | undefined {
  if (mount === 'folder') return undefined
  return mount === 's3' && s3 ? `s3 ${s3.endpoint ?? s3.region} ${s3.bucket}/${s3.prefix}` : mount
}
