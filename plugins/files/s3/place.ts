import type { S3Section } from './section.ts'

/** Where the bucket is, and how patiently it is asked. Throws for what cannot be. */
export function placeOf(section: S3Section) {
  const { bucket, region } = section
  const endpoint = new URL(
    section.endpoint ?? `https://s3.${region}.amazonaws.com${region.startsWith('cn-') ? '.cn' : ''}`,
  )
  // A certificate for names of buckets does not hold for one with a dot.
  const isPath = section.path_style ?? (section.endpoint !== undefined || bucket.includes('.'))
  if (!isPath && /^(?:[\d.]+|\[.*\])$/.test(endpoint.hostname))
    throw new Error('plugins.files.s3.path_style = false needs an endpoint with a name, which the bucket stands before')
  const base = isPath ? new URL(`/${bucket}/`, endpoint) : new URL(`${endpoint.protocol}//${bucket}.${endpoint.host}/`)
  const { timeout_ms: timeoutMs, deadline_ms: deadlineMs, attempts, prefix } = section
  return { bucket, host: endpoint.host, base, region, prefix, timeoutMs, deadlineMs, attempts }
}
