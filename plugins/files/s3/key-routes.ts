import * as v from 'valibot'
import { defineRoute, secret } from 'svc/sdk'
import type { AnyRoute } from 'svc/sdk'
import type { KeyChanges } from './change-key.ts'

const text = (maxChars: number) =>
  v.pipe(
    v.string(),
    v.trim(),
    v.nonEmpty('expected a key'),
    v.maxLength(maxChars),
    v.regex(/^[\x21-\x7e]+$/, 'expected printable characters without spaces'),
  )
const KeyBody = v.object({
  access_key_id: text(256),
  secret_access_key: secret(text(1_024)),
  session_token: v.optional(secret(text(8_192))),
})
const Changed = v.object({ status: v.picklist(['stored', 'removed']), bucket: v.string() })

/** The access key of the bucket. */
export function bucketKeyRoutes(open: () => Promise<KeyChanges>): readonly AnyRoute[] {
  const store = defineRoute({
    method: 'POST',
    path: '/api/files/bucket/key',
    summary: 'Store the access key of the bucket of files, encrypted, for all daemons',
    description:
      'An object is written, read and deleted with it first: one that does not work is not stored. It takes effect with ' +
      'the next request, and precedes the key of the configuration and the environment.',
    auth: 'bearer',
    effect: 'lasting',
    cost: 10,
    body: KeyBody,
    returns: Changed,
    errors: ['invalid_request', 'conflict', 'service_unavailable'],
    example: { body: { access_key_id: 'AKIAEXAMPLE', secret_access_key: 'example' } },
    async handle({ body }) {
      const bucket = await (
        await open()
      ).store({
        accessKeyId: body.access_key_id,
        secretAccessKey: body.secret_access_key,
        ...(body.session_token !== undefined && { sessionToken: body.session_token }),
      })
      return { status: 'stored' as const, bucket }
    },
  })
  const remove = defineRoute({
    method: 'DELETE',
    path: '/api/files/bucket/key',
    summary: 'Remove the stored access key of the bucket of files',
    description: 'That of the configuration or the environment is used from then on.',
    auth: 'bearer',
    effect: 'lasting',
    cost: 10,
    returns: Changed,
    errors: ['conflict'],
    async handle() {
      return { status: 'removed' as const, bucket: await (await open()).remove() }
    },
  })
  return [store, remove]
}
