import { readFileSync } from 'node:fs'
import { json } from 'node:stream/consumers'
import { getDocumentProxy } from 'unpdf'

const MAX_CHARS = 20_000
/** Pages whose characters are counted, spread over the document. */
const MAX_COUNTED = 20
const MAX_LISTED = 100
/** Fewer characters on a page than this are a heading, or a scan. */
const FEW_CHARS = 50

async function open({ path, password }) {
  const data = new Uint8Array(readFileSync(path))
  if (!Buffer.from(data.buffer, 0, Math.min(data.length, 1024)).includes('%PDF-'))
    throw new Error('the file is no PDF: "%PDF-" is not at its beginning')
  try {
    // Warnings of the library go to the standard output, where the answer is.
    return await getDocumentProxy(data, { password, verbosity: 0, isEvalSupported: false })
  } catch (cause) {
    if (cause.name === 'PasswordException')
      throw new Error(password === undefined ? 'the PDF needs a password' : 'the password is wrong', { cause })
    throw new Error(`the PDF is damaged: ${cause.message}`, { cause })
  }
}

async function textOf(pdf, number) {
  const page = await pdf.getPage(number)
  const { items } = await page.getTextContent()
  page.cleanup()
  const text = items.map(({ str = '', hasEOL = false }) => str + (hasEOL ? '\n' : '')).join('')
  return text.replace(/[ \t]+\n/g, '\n').trim()
}

/** The outline as lines, indented by depth. */
function flatten(entries, depth = 0) {
  return (entries ?? []).flatMap(({ title, items }) => [`${'  '.repeat(depth)}${title}`, ...flatten(items, depth + 1)])
}
function listFields(fields) {
  const found = Object.entries(fields ?? {}).flatMap(([name, [field]]) =>
    field?.type === undefined || field.type === '' ? [] : [{ name, type: field.type, value: field.value ?? null }],
  )
  return found.length === 0 ? undefined : found.slice(0, MAX_LISTED)
}
/** Of Acrobat: D:20260131120000+01'00'. */
const toDate = (text) =>
  /^D:(\d{4})(\d{2})(\d{2})/
    .exec(text ?? '')
    ?.slice(1)
    .join('-')

async function info(input) {
  const pdf = await open(input)
  const [{ info: facts }, outline, fields, attachments, labels] = await Promise.all([
    pdf.getMetadata(),
    pdf.getOutline(),
    pdf.getFieldObjects(),
    pdf.getAttachments(),
    pdf.getPageLabels(),
  ])
  const step = Math.max(1, Math.ceil(pdf.numPages / MAX_COUNTED))
  const chars = {}
  for (let number = 1; number <= pdf.numPages; number += step) chars[number] = (await textOf(pdf, number)).length
  const few = Object.values(chars).filter((count) => count < FEW_CHARS).length
  const contents = flatten(outline)
  return {
    pages: pdf.numPages,
    title: facts.Title,
    author: facts.Author,
    subject: facts.Subject,
    producer: facts.Producer,
    creator: facts.Creator,
    created: toDate(facts.CreationDate),
    changed: toDate(facts.ModDate),
    version: facts.PDFFormatVersion,
    encrypted: facts.EncryptFilterName !== null && facts.EncryptFilterName !== undefined,
    signed: facts.IsSignaturesPresent === true,
    form: facts.IsXFAPresent ? 'XFA' : facts.IsAcroFormPresent ? 'AcroForm' : undefined,
    fields: listFields(fields),
    outline: contents.length === 0 ? undefined : contents.slice(0, MAX_LISTED),
    page_labels: labels?.slice(0, MAX_LISTED),
    attachments: attachments ? Object.values(attachments).map(({ filename }) => filename) : undefined,
    characters_of_pages: chars,
    note:
      few * 2 > Object.keys(chars).length
        ? 'most pages have hardly any text: it is perhaps a scan, which needs OCR'
        : undefined,
  }
}

/** The numbers of `1-3, 7, 10-`, in order. Throws for what is no range, and for a page that is not there. */
function readPages(text, total) {
  if (text === undefined) return Array.from({ length: total }, (_, at) => at + 1)
  const wanted = new Set()
  for (const part of text.split(',').map((each) => each.trim())) {
    const [, from, dash, to] = /^(\d+)\s*(-?)\s*(\d*)$/.exec(part) ?? []
    const first = Number(from)
    const last = to ? Number(to) : dash ? total : first
    if (from === undefined || first < 1 || first > last) throw new Error(`pages: "${part}" is no range, such as 1-3`)
    if (last > total) throw new Error(`pages: there is no page ${last}; the PDF has ${total}`)
    for (let number = first; number <= last; number++) wanted.add(number)
  }
  return [...wanted].toSorted((one, other) => one - other)
}

async function text({ pages: ranges, find, max_chars: max = MAX_CHARS, ...input }) {
  const pdf = await open(input)
  const wanted = readPages(ranges, pdf.numPages)
  const pages = []
  let left = max
  let next
  for (const number of wanted) {
    const found = await textOf(pdf, number)
    if (find !== undefined && !found.toLowerCase().includes(find.toLowerCase())) continue
    if (found.length > left && pages.length > 0) {
      next = number
      break
    }
    const isCut = found.length > left
    pages.push({ page: number, text: found.slice(0, left), ...(isCut && { cut: `of ${found.length} characters` }) })
    left -= found.length
  }
  const isEmpty = pages.length > 0 && pages.every((page) => page.text === '')
  return {
    pages_total: pdf.numPages,
    pages,
    next_page: next,
    note:
      pages.length === 0
        ? `none of these pages holds ${JSON.stringify(find)}`
        : isEmpty
          ? 'these pages have no text: they are perhaps scans, which need OCR'
          : undefined,
  }
}

try {
  const { tool, input } = await json(process.stdin)
  console.log(JSON.stringify(await { info, text }[tool](input)))
} catch (error) {
  console.error(error.message)
  process.exitCode = 1
}
