# Built in one stage with everything. The other stage installs the package, as packed, with what it needs at run time.
FROM node:24-bookworm-slim AS build
WORKDIR /app
COPY package.json package-lock.json ./
# Without scripts: Node is that of the image, and nothing has to be compiled.
RUN npm ci --ignore-scripts
COPY . .
RUN npm run build && mkdir /package && npm pack --ignore-scripts --pack-destination /package \
  && cp package-lock.json /package/

FROM node:24-bookworm-slim
WORKDIR /app
# The lock file installs the versions that were tested; a package alone would bring newer ones.
RUN --mount=type=bind,from=build,source=/package,target=/package \
  tar -xzf /package/svc-*.tgz --strip-components=1 && cp /package/package-lock.json . \
  && npm ci --omit=dev --ignore-scripts && npm cache clean --force \
  && ln -s /app/dist/svc.js /usr/local/bin/svc
RUN useradd --create-home --uid 10001 svc && mkdir /data && chown svc /data
USER svc
ENV SVC_HOME=/data
VOLUME /data
EXPOSE 4545
# Bound wide inside the container, so a key is required: set SVC_API_KEY.
ENTRYPOINT ["svc"]
CMD ["start", "--host", "0.0.0.0"]
