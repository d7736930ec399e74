// Drawing a graph whose nodes have places: with WebGL where the machine has a part for it, else on a plain canvas, which
// is sooner done than WebGL that is worked out by the processor. `plain` says which: "yes", "no", or either.
//
// A picture has `draw(view)`, where `view` says how places become pixels: x * scale + dx, y * scale + dy.

const POINTS = `attribute vec2 place; attribute vec3 colour; attribute float size; uniform vec2 shift; uniform vec2 scale; uniform float ratio; varying vec3 tone;
void main() { gl_Position = vec4(place * scale + shift, 0.0, 1.0); gl_PointSize = size * ratio; tone = colour; }`;
const DISC = `precision mediump float; varying vec3 tone;
void main() { float far = length(gl_PointCoord - 0.5); if (far > 0.5) discard; gl_FragColor = vec4(tone, 1.0) * smoothstep(0.5, 0.42, far); }`;
const LINES = `attribute vec2 place; uniform vec2 shift; uniform vec2 scale; void main() { gl_Position = vec4(place * scale + shift, 0.0, 1.0); }`;
const FLAT = `precision mediump float; uniform vec4 tone; void main() { gl_FragColor = tone; }`;

function program(gl, vertex, fragment) {
  const made = gl.createProgram();
  for (const [kind, source] of [[gl.VERTEX_SHADER, vertex], [gl.FRAGMENT_SHADER, fragment]]) {
    const shader = gl.createShader(kind);
    gl.shaderSource(shader, source);
    gl.compileShader(shader);
    gl.attachShader(made, shader);
  }
  gl.linkProgram(made);
  if (!gl.getProgramParameter(made, gl.LINK_STATUS)) throw new Error(gl.getProgramInfoLog(made));
  return made;
}

// Whether the processor would work out WebGL. A canvas that was asked for one kind of picture has no other.
function isSlow() {
  const gl = document.createElement("canvas").getContext("webgl", { failIfMajorPerformanceCaveat: true });
  const named = gl?.getExtension("WEBGL_debug_renderer_info");
  return !gl || /swiftshader|llvmpipe|software|basic render/i.test(named ? gl.getParameter(named.UNMASKED_RENDERER_WEBGL) : "");
}

function withWebGL(canvas, line) {
  const gl = canvas.getContext("webgl", { antialias: true, alpha: true, premultipliedAlpha: true });
  if (!gl) return null;
  const points = program(gl, POINTS, DISC);
  const lines = program(gl, LINES, FLAT);
  const buffers = { place: gl.createBuffer(), colour: gl.createBuffer(), size: gl.createBuffer(), ends: gl.createBuffer() };
  const load = (buffer, values) => {
    gl.bindBuffer(gl.ARRAY_BUFFER, buffer);
    gl.bufferData(gl.ARRAY_BUFFER, values, gl.STATIC_DRAW);
  };
  const use = (which, name, buffer, width) => {
    const at = gl.getAttribLocation(which, name);
    gl.bindBuffer(gl.ARRAY_BUFFER, buffer);
    gl.enableVertexAttribArray(at);
    gl.vertexAttribPointer(at, width, gl.FLOAT, false, 0, 0);
  };
  gl.enable(gl.BLEND);
  gl.blendFunc(gl.ONE, gl.ONE_MINUS_SRC_ALPHA);
  let shown = 0;
  let ends = 0;
  return {
    load(places, colours, sizes, edges) {
      load(buffers.place, places);
      load(buffers.colour, colours);
      load(buffers.size, sizes);
      load(buffers.ends, edges);
      [shown, ends] = [places.length / 2, edges.length / 2];
    },
    draw({ scale, dx, dy }) {
      const { width, height } = canvas;
      gl.viewport(0, 0, width, height);
      gl.clearColor(0, 0, 0, 0);
      gl.clear(gl.COLOR_BUFFER_BIT);
      for (const which of [lines, points]) {
        gl.useProgram(which);
        gl.uniform2f(gl.getUniformLocation(which, "scale"), (2 * scale) / width, (-2 * scale) / height);
        gl.uniform2f(gl.getUniformLocation(which, "shift"), (2 * dx) / width - 1, 1 - (2 * dy) / height);
        if (which === lines) {
          gl.uniform4f(gl.getUniformLocation(lines, "tone"), ...line.slice(0, 3).map((part) => part * line[3]), line[3]);
          use(lines, "place", buffers.ends, 2);
          gl.drawArrays(gl.LINES, 0, ends);
        } else {
          gl.uniform1f(gl.getUniformLocation(points, "ratio"), devicePixelRatio);
          use(points, "place", buffers.place, 2);
          use(points, "colour", buffers.colour, 3);
          use(points, "size", buffers.size, 1);
          gl.drawArrays(gl.POINTS, 0, shown);
        }
      }
    },
  };
}

function onCanvas(canvas, line) {
  const pen = canvas.getContext("2d");
  const css = (tone) => `rgb(${[...tone].map((part) => Math.round(part * 255)).join(" ")})`;
  let all;
  return {
    load: (...arrays) => (all = arrays),
    draw({ scale, dx, dy }) {
      const [places, colours, sizes, edges] = all;
      pen.clearRect(0, 0, canvas.width, canvas.height);
      pen.strokeStyle = css(line.slice(0, 3));
      pen.globalAlpha = line[3];
      pen.beginPath();
      for (let at = 0; at < edges.length; at += 4) {
        pen.moveTo(edges[at] * scale + dx, edges[at + 1] * scale + dy);
        pen.lineTo(edges[at + 2] * scale + dx, edges[at + 3] * scale + dy);
      }
      pen.stroke();
      pen.globalAlpha = 1;
      for (let at = 0; at < sizes.length; at += 1) {
        pen.fillStyle = css(colours.subarray(3 * at, 3 * at + 3));
        pen.beginPath();
        pen.arc(places[2 * at] * scale + dx, places[2 * at + 1] * scale + dy, (sizes[at] / 2) * devicePixelRatio, 0, 7);
        pen.fill();
      }
    },
  };
}

export const picture = (canvas, line, plain) => (plain === "yes" || (plain !== "no" && isSlow()) ? null : withWebGL(canvas, line)) ?? onCanvas(canvas, line);
