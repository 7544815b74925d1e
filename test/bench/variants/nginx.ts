import { execFile } from "node:child_process";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { findBinary } from "../../harness/find-binary.ts";
import { startSingleProcess } from "./single-process.ts";
import type { Variant } from "./variant.ts";

/** The cheapest proxy that there is to buy: C, and no word about keys, machines or models. */
export const nginx: Variant = {
  name: "nginx",
  title: "nginx as a proxy without buffering, one worker",
  async version() {
    // It tells its version as if it were an error.
    const { stderr } = await promisify(execFile)(await binary(), ["-v"]);
    return stderr.replace("nginx version: ", "").trim();
  },
  async missing() {
    return (await findBinary("nginx")) === undefined ? "nginx is not installed" : undefined;
  },
  start(means) {
    const command = async (port: number) => {
      const file = join(means.folder, "nginx.conf");
      await writeFile(file, configuration({ ...means, port }));
      return { binary: await binary(), args: ["-c", file, "-e", join(means.folder, "nginx-error.log")] };
    };
    return startSingleProcess({ name: "nginx", command });
  },
};

async function binary(): Promise<string> {
  const path = await findBinary("nginx");
  if (path === undefined) throw new Error("nginx is not installed");
  return path;
}

/**
 * One process is master and worker both, so that none is left when it is killed; it goes through the same loop as a
 * worker does. Bodies stay in memory, as they do with everybody else.
 */
function configuration({ folder, farEndPort, port }: { folder: string; farEndPort: number; port: number }): string {
  return `
daemon off;
master_process off;
pid ${folder}/nginx.pid;
events {
  worker_connections 20000;
}
http {
  access_log off;
  client_body_temp_path ${folder}/bodies;
  proxy_temp_path ${folder}/answers;
  fastcgi_temp_path ${folder}/fastcgi;
  uwsgi_temp_path ${folder}/uwsgi;
  scgi_temp_path ${folder}/scgi;
  client_max_body_size 0;
  client_body_buffer_size 16m;
  keepalive_requests 1000000000;
  keepalive_timeout 1h;
  upstream far_end {
    server 127.0.0.1:${farEndPort};
    keepalive 8192;
    keepalive_requests 1000000000;
    keepalive_timeout 1h;
  }
  server {
    listen 127.0.0.1:${port} backlog=4096;
    location / {
      proxy_pass http://far_end;
      proxy_http_version 1.1;
      proxy_set_header Connection "";
      proxy_buffering off;
      proxy_read_timeout 1h;
    }
  }
}
`;
}
