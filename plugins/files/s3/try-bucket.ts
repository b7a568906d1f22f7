import { Refusal } from 'svc/sdk'
import type { Bucket } from './bucket.ts'

/**
 * Writes, reads and deletes an object, as files need it. `name`: of who does it, so that no two do it with one object.
 * Throws `service_unavailable` with what is wrong and what to do about it.
 */
export async function tryBucket(
  bucket: Pick<Bucket, 'get' | 'put' | 'remove'>,
  name: string,
  bucketName: string,
): Promise<void> {
  const key = `.check/${name}`
  await bucket.put(key, Buffer.from(name))
  const read = await bucket.get(key, 1_024)
  await bucket.remove(key)
  if (!read || Buffer.from(read).toString() !== name)
    throw new Refusal(
      'service_unavailable',
      `The bucket "${bucketName}" (plugins.files.s3) does not have what was written a moment ago`,
    )
}
