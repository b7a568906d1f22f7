import { Refusal } from 'svc/sdk'
import { identityFiles } from './identity-files.ts'

/** How large a file of a workspace may be, in bytes. */
export class SizeLimits {
  readonly maxFileBytes: number
  readonly maxUploadBytes: number
  /** Of one identity file. */
  readonly maxIdentityBytes: number
  constructor(limits: {
    readonly maxFileBytes: number
    readonly maxUploadBytes: number
    readonly maxIdentityBytes: number
  }) {
    this.maxFileBytes = limits.maxFileBytes
    this.maxUploadBytes = limits.maxUploadBytes
    this.maxIdentityBytes = limits.maxIdentityBytes
  }

  /** Throws `payload_too_large`. */
  check(name: string, size: number): void {
    const { maxFileBytes, maxUploadBytes, maxIdentityBytes } = this
    const [limit, key] = identityFiles.has(name)
      ? ([maxIdentityBytes, 'max_identity_bytes'] as const)
      : name.startsWith('uploads/') && maxUploadBytes > maxFileBytes
        ? ([maxUploadBytes, 'max_upload_bytes'] as const)
        : ([maxFileBytes, 'max_file_bytes'] as const)
    if (size > limit)
      throw new Refusal('payload_too_large', `"${name}": at most ${limit} bytes (plugins.files.${key})`, {
        details: { size_bytes: size, limit_bytes: limit },
      })
  }
}
