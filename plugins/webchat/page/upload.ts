export interface UploadOptions {
  readonly headers: Readonly<Record<string, string>>
  /** From 0 to 1. */
  readonly onProgress: (progress: number) => void
  readonly signal: AbortSignal
}

/** Sends a file. `fetch` does not tell how much of it was sent. Rejects when nothing answered. */
export function postFile(path: string, file: File, { headers, onProgress, signal }: UploadOptions): Promise<Response> {
  return new Promise((resolve, reject) => {
    const request = new XMLHttpRequest()
    request.open('POST', path)
    for (const [name, value] of Object.entries(headers)) request.setRequestHeader(name, value)
    request.upload.addEventListener('progress', ({ loaded, total }) => onProgress(total === 0 ? 0 : loaded / total))
    request.addEventListener('load', () => {
      const retryAfter = request.getResponseHeader('retry-after')
      const headers = retryAfter === null ? {} : { 'retry-after': retryAfter }
      resolve(new Response(request.responseText, { status: request.status, headers }))
    })
    request.addEventListener('error', () => reject(new Error('Nothing answered')))
    request.addEventListener('abort', () => reject(signal.reason))
    signal.addEventListener('abort', () => request.abort(), { once: true })
    request.send(file)
  })
}
