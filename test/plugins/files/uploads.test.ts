import { buffer } from 'node:stream/consumers'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { ZipFile } from 'yazl'
import { startHost } from '../../support/host.ts'
import type { TestHost } from '../../support/host.ts'
import type { Json } from '../../support/json.ts'

let host: TestHost
let agent: string
let other: string
beforeAll(async () => {
  host = await startHost({
    plugins: ['audit', 'agents', 'files'],
    config: { plugins: { files: { max_upload_bytes: 100_000 } } },
  })
  const spawn = async (name: string): Promise<string> =>
    (await host.json('POST', '/api/agents', { manifest_toml: `name = "${name}"` })).body.agent_id
  agent = await spawn('receiver')
  other = await spawn('neighbour')
})
afterAll(async () => {
  await host[Symbol.asyncDispose]()
})

/** One black pixel. */
const png = Uint8Array.from(
  Buffer.from(
    'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==',
    'base64',
  ),
)
const gif = Uint8Array.from(Buffer.from('R0lGODlhAQABAIAAAAAAAP///yH5BAEAAAAALAAAAAABAAEAAAIBRAA7', 'base64'))
/** The file of Word, as far as its kind can be told from it. */
const docx = await (async () => {
  const zip = new ZipFile()
  const type = 'application/vnd.openxmlformats-officedocument.wordprocessingml.document.main+xml'
  zip.addBuffer(Buffer.from(`<Types><Override ContentType="${type}"/></Types>`), '[Content_Types].xml')
  zip.addBuffer(Buffer.from('<document/>'), 'word/document.xml')
  zip.end()
  return Uint8Array.from(await buffer(zip.outputStream))
})()
const mp4 = Uint8Array.from(Buffer.from('\0\0\0\x18ftypmp42\0\0\0\0mp42isom\0\0\0\x08free', 'latin1'))

const form = (...files: readonly File[]): FormData => {
  const made = new FormData()
  made.set('note', 'text fields are let through')
  files.forEach((file, index) => {
    made.set(`file${index}`, file)
  })
  return made
}
async function send(
  body: NonNullable<RequestInit['body']>,
  headers: Record<string, string> = {},
  id = agent,
): Promise<{ status: number; body: Json }> {
  const response = await host.fetch(`/api/agents/${id}/upload`, { method: 'POST', body, headers })
  return { status: response.status, body: await response.json() }
}
const upload = (name: string, type: string, content: string | Uint8Array<ArrayBuffer> = 'content') =>
  send(form(new File([content], name, { type })))

describe('POST /api/agents/{id}/upload', () => {
  it('stores the file of a form in the workspace, and tells of it', async () => {
    const bytes = png
    const { status, body } = await upload('Größe 1.png', 'image/png', bytes)
    expect(status).toBe(201)
    expect(body).toEqual({
      file_id: expect.stringMatching(/^[0-9a-f-]{36}$/),
      filename: 'Größe 1.png',
      content_type: 'image/png',
      size: png.byteLength,
      path: `uploads/${body.file_id}/Größe 1.png`,
    })
    const { files } = (await host.json('GET', `/api/agents/${agent}/files`)).body
    expect(files.map((file: { name: string }) => file.name)).toContain(body.path)
    const { entries } = (await host.json('GET', `/api/audit/recent?agent_id=${agent}&event_type=file_access`)).body
    expect(entries.at(-1).details).toContain(`upload "${body.path}" (${png.byteLength} bytes, image/png)`)
    expect(new Uint8Array(await (await host.fetch(`/api/uploads/${body.file_id}`)).arrayBuffer())).toEqual(bytes)
  })

  it('takes the bytes alone with a name in a header', async () => {
    const { status, body } = await send('a;b', { 'content-type': 'text/csv', 'x-filename': 't%C3%A4glich.csv' })
    expect([status, body.filename, body.size]).toEqual([201, 'täglich.csv', 3])
  })

  it.each([
    ['../../../../etc/passwd', 'passwd'],
    ['C:\\fakepath\\a.txt', 'a.txt'],
    ['..', 'file'],
    ['con.txt', 'filecon.txt'],
    ['a\u0007b.txt', 'a_b.txt'],
    ['a\u202egnp.exe', 'a_gnp.exe'],
    ['x%2e%2e.txt', 'x_2e_2e.txt'],
    ['"quoted".txt', '_quoted_.txt'],
    [`${'n'.repeat(300)}.txt`, 'n'.repeat(80)],
  ])('the name %s becomes %s', async (name, stored) => {
    const { status, body } = await send('x', { 'content-type': 'text/plain', 'x-filename': encodeURIComponent(name) })
    expect([status, body.filename]).toEqual([201, stored])
    expect((await host.fetch(`/api/uploads/${body.file_id}`)).status).toBe(200)
  })

  it('sent again with its key is stored once', async () => {
    const again = () =>
      send('once', { 'content-type': 'text/plain', 'x-filename': 'once.txt', 'idempotency-key': 'upload-1' })
    const answers = await Promise.all([again(), again(), again()])
    expect(answers.map(({ status }) => status)).toEqual([201, 201, 201])
    expect(new Set(answers.map(({ body }) => body.file_id)).size).toBe(1)
    const { files } = (await host.json('GET', `/api/agents/${agent}/files`)).body
    expect(files.filter((file: { name: string }) => file.name.endsWith('/once.txt'))).toHaveLength(1)
    expect(
      (await send('other', { 'content-type': 'text/plain', 'x-filename': 'once.txt', 'idempotency-key': 'upload-1' }))
        .status,
    ).toBe(409)
  })

  it('over its limit is 413, empty or without a file 400', async () => {
    expect((await upload('large.txt', 'text/plain', 'x'.repeat(100_001))).status).toBe(413)
    expect((await upload('huge.txt', 'text/plain', 'x'.repeat(300_000))).status).toBe(413)
    expect((await upload('largest.txt', 'text/plain', 'x'.repeat(100_000))).status).toBe(201)
    expect((await upload('empty.txt', 'text/plain', '')).status).toBe(400)
    expect((await send(form())).status).toBe(400)
    expect((await send(form(new File(['a'], 'a.txt'), new File(['b'], 'b.txt')))).status).toBe(400)
    expect((await send('{"file":"x"}', { 'content-type': 'application/json' })).body.error.message).toContain(
      'X-Filename',
    )
  })

  it.each<[name: string, type: string, content: string | Uint8Array<ArrayBuffer>, stored: string]>([
    ['a.sh', 'application/x-sh', '#!/bin/sh\n', 'text/plain; charset=utf-8'],
    ['a.unknown', '', new Uint8Array([0, 1, 2, 3, 250, 0]), 'application/octet-stream'],
    ['a.bin', 'application/octet-stream', new Uint8Array([0, 1, 2, 3, 250, 0]), 'application/octet-stream'],
    ['constructor', '', 'x', 'text/plain; charset=utf-8'],
    [
      'letter.docx',
      'application/vnd.openxmlformats-officedocument.wordprocessingml.document',
      docx,
      'application/vnd.openxmlformats-officedocument.wordprocessingml.document',
    ],
    ['film.mp4', 'video/mp4', mp4, 'video/mp4'],
    ['text.mp4', 'video/mp4', 'no film', 'text/plain; charset=utf-8'],
    ['photo.png', 'image/png', gif, 'image/gif'],
    ['photo.txt', 'text/plain', gif, 'image/gif'],
    ['photo', '', png, 'image/png'],
    ['note.txt', '', 'GIF89a is what a picture begins with', 'text/plain; charset=utf-8'],
    ['note.txt', '', 'BM begins others', 'text/plain; charset=utf-8'],
    ['a.pdf', 'text/html', '%PDF-1.4\n', 'application/pdf'],
    ['old.csv', 'text/csv', new Uint8Array([0x47, 0x72, 0xf6, 0xdf, 0x65]), 'text/csv; charset=utf-8'],
    ['x.json', '', '{}', 'application/json'],
  ])('%s of type %s is taken as what it is', async (name, type, content, stored) => {
    const { status, body } = await upload(name, type, content)
    expect([status, body.content_type]).toEqual([201, stored])
    const response = await host.fetch(`/api/uploads/${body.file_id}`)
    expect([response.headers.get('content-type'), response.headers.get('content-disposition')]).toEqual([
      stored,
      expect.stringMatching(/^attachment;/),
    ])
    await response.arrayBuffer()
  })

  it.each([
    ['x.png', 'image/png', '<html><script>alert(1)</script>'],
    ['x.gif', 'image/gif', 'GIF89a<script>alert(1)</script>'],
    ['x.jpg', 'image/jpeg; charset=x', 'text'],
    ['x.png', 'IMAGE/PNG', '%PDF-1.4\n'],
  ])('%s sent as %s is refused when it is no picture', async (name, type, content) => {
    const { status, body } = await upload(name, type, content)
    expect([status, body.error]).toEqual([
      400,
      expect.objectContaining({
        code: 'invalid_request',
        message: expect.stringContaining('its bytes are no picture'),
      }),
    ])
  })

  it.each([
    ['no boundary', 'multipart/form-data', 'x'],
    ['a boundary with a line break', 'multipart/form-data; boundary="a\tb"', 'x'],
    ['a boundary that is not in the body', 'multipart/form-data; boundary=b', 'nothing here'],
    [
      'a body that ends early',
      'multipart/form-data; boundary=b',
      '--b\r\nContent-Disposition: form-data; name="f"; filename="a.txt"\r\n\r\nabc',
    ],
    [
      'headers that do not end',
      'multipart/form-data; boundary=b',
      `--b\r\nContent-Disposition: form-data; name="f"\r\n${'x'.repeat(9000)}`,
    ],
    [
      'a part without a disposition',
      'multipart/form-data; boundary=b',
      '--b\r\nContent-Type: text/plain\r\n\r\nabc\r\n--b--\r\n',
    ],
    [
      'an encoded part',
      'multipart/form-data; boundary=b',
      [
        '--b',
        'Content-Disposition: form-data; name="f"; filename="a.txt"',
        'Content-Transfer-Encoding: base64',
        '',
        'abc',
        '--b--',
        '',
      ].join('\r\n'),
    ],
    [
      'a thousand parts',
      'multipart/form-data; boundary=b',
      `${'--b\r\nContent-Disposition: form-data; name="f"\r\n\r\nx\r\n'.repeat(1000)}--b--\r\n`,
    ],
    ['garbage behind a boundary', 'multipart/form-data; boundary=b', '--bgarbage\r\n\r\n--b--'],
  ])('a form with %s is 400', async (_, type, body) => {
    const answer = await send(body, { 'content-type': type })
    expect([answer.status, answer.body.error.code]).toEqual([400, 'invalid_request'])
  })

  const type = 'multipart/form-data; boundary=b'
  const part = (disposition: string, content = 'abc'): string =>
    `--b\r\nContent-Disposition: form-data; ${disposition}\r\n\r\n${content}\r\n`
  const good = part('name="f"; filename="hostile.txt"')
  it.each([
    ['a body that is cut in a file', type, good.slice(0, -3), 'multipart: the body ends before its closing boundary'],
    ['a body that is cut in a header', type, `${good}--b\r\nContent-Dis`, 'multipart: the body ends before'],
    ['a body without its last boundary', type, good, 'multipart: the body ends before its closing boundary'],
    ['a file without a name', type, `${part('filename="hostile.txt"')}--b--\r\n`, 'multipart: a part has no name'],
    ['a text without a name', type, `${good}${part('x=y')}--b--\r\n`, 'multipart: a part has no name'],
    ['33 parts', type, `${good}${part('name="n"', '').repeat(32)}--b--\r\n`, 'multipart: more than 32 parts'],
    [
      'a header of 64 KiB',
      type,
      `${good}--b\r\nContent-Disposition: form-data; name="${'x'.repeat(65_536)}"\r\n\r\n\r\n--b--\r\n`,
      'multipart: the headers of a part are malformed or have more than 16 KiB',
    ],
    ['another boundary', 'multipart/form-data; boundary=c', `${good}--b--\r\n`, 'or has another boundary'],
    ['no boundary', 'multipart/form-data', `${good}--b--\r\n`, 'multipart: Content-Type has no boundary'],
    [
      'a boundary of 71 characters',
      `multipart/form-data; boundary=${'b'.repeat(71)}`,
      good,
      'multipart: Content-Type has no boundary of 1 to 70 characters',
    ],
  ])('a form with %s is 400, says why and leaves no file', async (_, contentType, body, message) => {
    const answer = await send(body, { 'content-type': contentType })
    expect([answer.status, answer.body.error.code]).toEqual([400, 'invalid_request'])
    expect(answer.body.error.message).toContain(message)
    const { files } = (await host.json('GET', `/api/agents/${agent}/files`)).body
    expect(files.filter((file: { name: string }) => file.name.includes('hostile'))).toEqual([])
  })

  it('a form of 32 parts is taken, and one of 10,000 parts is 400', async () => {
    await using large = await startHost({ plugins: ['audit', 'agents', 'files'] })
    const { agent_id: id } = (await large.json('POST', '/api/agents', { manifest_toml: 'name = "x"' })).body
    const post = (count: number) =>
      large.fetch(`/api/agents/${id}/upload`, {
        method: 'POST',
        headers: { 'content-type': type },
        body: `${good}${part('name="n"', '').repeat(count - 1)}--b--\r\n`,
      })
    expect([(await post(32)).status, (await post(10_000)).status]).toEqual([201, 400])
    const { files } = (await large.json('GET', `/api/agents/${id}/files`)).body
    expect(files.filter((file: { name: string }) => file.name.includes('hostile'))).toHaveLength(1)
  })

  it('a file that looks like its boundary over and over is stored as it was sent', async () => {
    const near = '\r\n--boundar'.repeat(9000)
    const { status, body } = await send(
      [
        `--boundary`,
        `Content-Disposition: form-data; name="f"; filename="near.txt"`,
        `Content-Type: text/plain`,
        ``,
        `${near}`,
        `--boundary--`,
        ``,
      ].join('\r\n'),
      { 'content-type': 'multipart/form-data; boundary=boundary' },
    )
    expect([status, body.size]).toEqual([201, near.length])
  })
})

it('the form is in the OpenAPI document', async () => {
  const { paths } = (await host.app.daemon.openapi()) as { paths: Record<string, Json> }
  expect(paths['/api/agents/{id}/upload'].post.requestBody.content['multipart/form-data'].schema).toEqual({
    type: 'object',
    required: ['file'],
    properties: { file: { type: 'string', format: 'binary' } },
  })
})

describe('GET /api/uploads/{file_id}', () => {
  it.each([
    ['page.html', 'text/html', 'text/plain; charset=utf-8'],
    ['drawing.svg', 'image/svg+xml', 'text/plain; charset=utf-8'],
    ['code.js', 'text/javascript', 'text/plain; charset=utf-8'],
    ['data.csv', '', 'text/csv; charset=utf-8'],
    ['x.png', 'text/html', 'text/plain; charset=utf-8'],
    ['doc.xml', 'text/xml', 'text/plain; charset=utf-8'],
  ])('%s sent as %s is served as %s, to be saved and never run', async (name, type, served) => {
    const { body } = await upload(name, type, '<script>alert(1)</script>')
    const response = await host.fetch(`/api/uploads/${body.file_id}`)
    expect(response.status).toBe(200)
    expect(response.headers.get('content-type')).toBe(served)
    expect(response.headers.get('content-disposition')).toBe(`attachment; filename="${name}"; filename*=UTF-8''${name}`)
    expect(response.headers.get('content-security-policy')).toMatch(/; sandbox$/)
    expect(response.headers.get('x-content-type-options')).toBe('nosniff')
    expect(await response.text()).toBe('<script>alert(1)</script>')
  })

  it('a name cannot reach into the headers', async () => {
    const { body } = await send('x', {
      'content-type': 'text/plain',
      'x-filename': encodeURIComponent('a"\r\nSet-Cookie: x=1;.txt'),
    })
    const response = await host.fetch(`/api/uploads/${body.file_id}`)
    expect(response.headers.get('set-cookie')).toBeNull()
    expect(response.headers.get('content-disposition')).toMatch(
      /^attachment; filename="[^"]*"; filename\*=UTF-8''[^\s]*$/,
    )
  })

  it('an unknown id is 404, and what is no id 400', async () => {
    expect((await host.json('GET', '/api/uploads/00000000-0000-4000-8000-000000000000')).status).toBe(404)
    for (const id of ['x', '..%2f..%2fetc%2fpasswd', '%00', `..%2f${agent}`])
      expect((await host.fetch(`/api/uploads/${id}`)).status).toBe(400)
  })

  it('goes with its file and with its agent', async () => {
    const first = (await upload('a.txt', 'text/plain')).body
    await host.json('DELETE', `/api/agents/${agent}/files/${first.path}`)
    expect((await host.json('GET', `/api/uploads/${first.file_id}`)).status).toBe(404)
    const { body } = await send('x', { 'content-type': 'text/plain', 'x-filename': 'b.txt' }, other)
    expect((await host.fetch(`/api/agents/${agent}/files/${body.path}`)).status).toBe(404)
    await host.json('DELETE', `/api/agents/${other}`)
    expect((await host.json('GET', `/api/uploads/${body.file_id}`)).status).toBe(404)
  })

  it('needs the key when there is one', async () => {
    await using locked = await startHost({
      plugins: ['audit', 'agents', 'files'],
      config: { api_key: 'a-long-enough-key-for-a-test' },
    })
    for (const [method, path] of [
      ['GET', '/api/uploads/00000000-0000-4000-8000-000000000000'],
      ['POST', `/api/agents/${agent}/upload`],
      ['GET', `/api/agents/${agent}/files`],
      ['GET', `/api/agents/${agent}/files/SOUL.md`],
      ['PUT', `/api/agents/${agent}/files/SOUL.md`],
      ['DELETE', `/api/agents/${agent}/files/SOUL.md`],
    ] as const) {
      expect((await locked.fetch(path, { method })).status).toBe(401)
    }
  })
})
